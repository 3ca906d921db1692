/**
 * What the daemon tells its operator: one line of JSON for each request, each call's end, and what nobody foresaw.
 *
 * Guarantees: nothing is redacted, because nothing else is ever written: a line holds the fields that are listed here, each
 * a short text or a number that is the daemon's own word, or a user's or tenant's name. No header, address, query, body,
 * value or message of an error is among them. Lines are written at once, in order. Where they cannot be (a full disk, a
 * reader that left), they are lost and counted, and the daemon goes on.
 */
import { closeSync, constants, openSync, writeSync } from "node:fs"
import { pino } from "pino"
import { HostStartError } from "../../host/start-error.ts"

const FIELDS = [
  "method",
  "route",
  "status",
  "user",
  "tenant",
  "actor",
  "call",
  "code",
  "ms",
  "fault",
  "at",
  "cause",
  "lost",
] as const
type Field = (typeof FIELDS)[number]
type Line = Readonly<Partial<Record<Field, string | number>>>

const LONGEST = 256

const only = (line: Line): Line =>
  Object.fromEntries(
    FIELDS.flatMap((field): [Field, string | number][] => {
      const value = line[field]
      if (typeof value === "number") return [[field, Math.round(value * 1000) / 1000]]
      return typeof value === "string" ? [[field, value.slice(0, LONGEST)]] : []
    }),
  )

/** Where in the sources it was thrown; never what it said. */
const placeOf = (error: unknown): string => {
  const frame = /^ {4}at .*?([^/\\ (]+:\d+):\d+\)?$/m.exec(error instanceof Error ? (error.stack ?? "") : "")
  return frame?.[1] ?? "?"
}

interface Outlet extends Disposable {
  write(line: string): void
}

const nowhere: Outlet = { write: () => undefined, [Symbol.dispose]: () => undefined }

const fileOutlet = (file: string): Outlet => {
  const open = (): number => {
    try {
      return openSync(file, constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOCTTY, 0o600)
    } catch (error) {
      throw new HostStartError(
        "internal",
        `the log cannot be written to ${file}: ${(error as Error).message}`,
        "name a file in a folder that is there and that this user may write to (`serve.log` of caisson.yaml)",
      )
    }
  }
  const fd = open()
  return {
    write: (line) => void writeSync(fd, line),
    [Symbol.dispose]: () => closeSync(fd),
  }
}

interface LogOptions {
  /** `stderr`, `none`, or the path of a file */
  readonly to: string
  /** takes the lines for `stderr` */
  readonly stderr?: (line: string) => void
}

const outletOf = ({ to, stderr }: LogOptions): Outlet => {
  if (to !== "stderr" && to !== "none") return fileOutlet(to)
  return to === "none" || stderr === undefined ? nowhere : { ...nowhere, write: stderr }
}

export class DaemonLog implements Disposable {
  readonly #options: LogOptions
  readonly #pino
  #outlet: Outlet
  #lost = 0
  constructor(options: LogOptions) {
    this.#options = options
    this.#outlet = outletOf(options)
    this.#pino = pino(
      { base: null, timestamp: pino.stdTimeFunctions.isoTime },
      { write: (line: string) => this.#write(line) },
    )
  }
  #write(line: string): void {
    try {
      this.#outlet.write(line)
    } catch {
      this.#lost += 1
    }
  }
  #tell(what: string, line: Line): void {
    const lost = this.#lost
    this.#lost = 0
    this.#pino.info(only(lost === 0 ? line : { ...line, lost }), what)
  }
  request(line: Pick<Line, "method" | "route" | "status" | "user" | "tenant" | "actor" | "ms">): void {
    this.#tell("request", line)
  }
  call(line: Pick<Line, "call" | "code" | "user" | "tenant" | "actor" | "ms">): void {
    this.#tell("call", line)
  }
  fault(error: unknown): void {
    const { code } = (error ?? {}) as { readonly code?: unknown }
    this.#tell("fault", {
      fault: error instanceof Error ? error.name : typeof error,
      ...(typeof code === "string" && /^[A-Z][A-Z0-9_]{1,63}$/.test(code) ? { code } : {}),
      at: placeOf(error),
    })
  }
  /** `began`, `reloaded`, `not-reloaded`, `closing` … */
  event(what: string, line: Pick<Line, "cause" | "actor"> = {}): void {
    this.#tell(what, line)
  }
  /** The file anew: whoever turns logs over has moved the old one away. */
  reopen(): void {
    const fresh = outletOf(this.#options)
    this.#outlet[Symbol.dispose]()
    this.#outlet = fresh
  }
  [Symbol.dispose](): void {
    const last = this.#outlet
    this.#outlet = nowhere
    last[Symbol.dispose]()
  }
}
