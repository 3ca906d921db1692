/**
 * The access record: what one call asked for, and what became of each request. Types alone; everything that a contract can be
 * proposed from is in here, and nothing of a file's content or a request's body.
 *
 * It is there of calls that were made with `observe: true`, in the envelope (`access`) and, cut, in the receipt.
 *
 * - Paths of the workspace are relative to it (`notes/a.txt`, `.` for its root); of the home they begin with `~/`; all others
 *   are absolute, as inside the sandbox.
 * - A row with `folder: true` stands for several files below that folder that were treated alike.
 * - `verdict`: `allowed` was let through; `denied` was stopped or never shown; `absent` exists neither inside nor outside;
 *   `discarded` went to /tmp or to a home that nobody keeps.
 * - Writes of the workspace are `allowed` here and judged elsewhere: `effects` says which were declared.
 */
export interface AccessRecord {
  /** how paths and programs were seen; `none`: only hosts are in the record */
  readonly means: "seccomp" | "none"
  readonly reads: readonly AccessedPath[]
  readonly writes: readonly AccessedPath[]
  readonly programs: readonly StartedProgram[]
  readonly hosts: readonly DialledHost[]
  /** requests about paths that were seen, and those of which only a folder is told, since there were too many */
  readonly seen: number
  readonly lost: number
}

type AccessVerdict = "allowed" | "denied" | "absent" | "discarded"

export interface AccessedPath {
  readonly path: string
  readonly where: "workspace" | "home" | "scratch" | "system" | "outside"
  readonly verdict: AccessVerdict
  /** of what was not let through */
  readonly reason?: string
  readonly folder?: true
  /** how often it was asked for */
  readonly count: number
  /** of files that were opened to be read: their size then */
  readonly bytes?: number
}

export interface StartedProgram {
  /** its file name, which is what `exec.spawn` and `--exec` take; `*` where too many of one folder were tried */
  readonly name: string
  readonly path: string
  readonly verdict: AccessVerdict
  readonly reason?: string
  readonly count: number
}

export interface DialledHost {
  /** `host:port`; `host` alone where it was only looked up; else an address */
  readonly target: string
  readonly verdict: "allowed" | "denied"
  readonly reason?: string
  readonly count: number
  /** of one that was reached: what was sent there, and what came back; requests and answers as they are in the clear */
  readonly bytes_out?: number
  readonly bytes_in?: number
}
