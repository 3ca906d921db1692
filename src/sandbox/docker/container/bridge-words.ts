/**
 * What the host and `src/runner/bridge.pl` say to each other beside the job: a few words each.
 *
 * Guarantees: a line that is not understood is reported as such. Pure.
 */
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
