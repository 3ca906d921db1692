/**
 * The words between the host and `src/runner/bridge.pl`: one job in, a few status lines out.
 *
 * Guarantees: arguments and environment travel as bytes with their lengths, so nothing in them can be taken for
 * anything else; a line that is not understood is reported as such. Pure.
 */
export interface WireJob {
  /** absolute path inside the container */
  readonly program: string
  readonly folder: string
  /** compiled system-call filter */
  readonly filter: Uint8Array
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly limits: readonly { readonly resource: number; readonly value: bigint }[]
  readonly tty: boolean
  /** descriptors 3 and 4 are the program's too */
  readonly privatePipes: boolean
}

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const field = (value: string | Uint8Array): Buffer => {
  const bytes = typeof value === "string" ? Buffer.from(value, "utf8") : Buffer.from(value)
  return Buffer.concat([number(bytes.length), bytes])
}
const fields = (values: readonly (string | Uint8Array)[]): Buffer =>
  Buffer.concat([number(values.length), ...values.map(field)])
const limit = ({ resource, value }: WireJob["limits"][number]): Buffer => {
  const bytes = Buffer.alloc(12)
  bytes.writeUInt32LE(resource, 0)
  bytes.writeBigUInt64LE(value, 4)
  return bytes
}

export const encodeJob = (job: WireJob): Buffer => {
  const body = Buffer.concat([
    field(job.program),
    field(job.folder),
    field(job.filter),
    fields(job.argv),
    fields(Object.entries(job.env).map(([name, value]) => `${name}=${value}`)),
    fields(job.limits.map(limit)),
    number(job.tty ? 1 : 0),
    number(job.privatePipes ? 1 : 0),
  ])
  return Buffer.concat([number(body.length), body])
}

/** Asks the bridge to kill every process of the container and to report. */
export const STOP = Buffer.from("K")

/** The program's streams: its three, and the private ones to and from it. */
export type Streams<T> = Readonly<Record<"input" | "out" | "err" | "toTool" | "fromTool", T>>

export type Status =
  /** the bridge's descriptors of the host's ends of the program's streams */
  | { readonly word: "ready"; readonly streams: Streams<number> }
  | { readonly word: "ended"; readonly code: number; readonly signal: number }
  /** the program could not be started */
  | { readonly word: "unstartable"; readonly errno: number }
  | { readonly word: "failed"; readonly message: string }

export const parseStatus = (line: string): Status => {
  const ready = /^R (\d{1,4}) (\d{1,4}) (\d{1,4}) (\d{1,4}) (\d{1,4})$/.exec(line)
  if (ready !== null) {
    const [input = -1, out = -1, err = -1, toTool = -1, fromTool = -1] = ready.slice(1).map(Number)
    return { word: "ready", streams: { input, out, err, toTool, fromTool } }
  }
  const ended = /^S (\d{1,5})$/.exec(line)
  if (ended !== null) {
    const raw = Number(ended[1])
    return { word: "ended", code: raw >> 8, signal: raw & 127 }
  }
  const unstartable = /^X (\d{1,5})$/.exec(line)
  if (unstartable !== null) return { word: "unstartable", errno: Number(unstartable[1]) }
  return {
    word: "failed",
    message: line.startsWith("F ") ? line.slice(2) : `an unknown status: ${JSON.stringify(line.slice(0, 80))}`,
  }
}

/** Numbers of prctl, setsid, prlimit64, pidfd_open and dup3, the bridge's arguments. */
export const bridgeCalls = (architecture: string): readonly number[] =>
  architecture === "arm64" ? [167, 157, 261, 434, 24] : [157, 112, 302, 434, 292]
