/**
 * What a run was seen to ask the kernel for, path by path. Types alone.
 *
 * Paths are as inside: `/workspace/…`, `/home/tool/…`. A row of a folder that stands for several files below it has
 * `folder: true`, and counts all of them.
 */
export interface ObservedPath {
  readonly path: string
  /** how it was asked for: `read` and `write` by opening or changing it, `start` by starting it or looking for a program */
  readonly op: "read" | "write" | "start"
  /**
   * `allowed`: it was there, and open to this; `absent`: neither here nor outside; `denied`: it exists outside, or lies where
   * nothing is shown or may be written; `discarded`: written to scratch or a home that nobody keeps
   */
  readonly verdict: "allowed" | "absent" | "denied" | "discarded"
  /** of those that were not simply allowed: a stable word */
  readonly reason?: "not_shown" | "hidden" | "read_only" | "not_listed" | "not_startable" | "own_home"
  /** a person should hear of it; else it is what programs do all the time */
  readonly notable?: true
  readonly folder?: true
  readonly count: number
  /** of the files as they were opened to be read */
  readonly bytes?: number
}

export interface Observed {
  readonly paths: readonly ObservedPath[]
  /** requests seen */
  readonly seen: number
  /** requests of which only a folder is told, though a person should hear of each: there were too many */
  readonly lost: number
}
