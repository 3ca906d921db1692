/**
 * A job as the process that waits inside a sandbox reads it (`src/runner/wait.pl`, and `bridge.pl` in a container).
 *
 * Guarantees: arguments and environment travel as bytes with their lengths, so nothing in them can be taken for
 * anything else. Pure.
 */
export interface WireLimit {
  readonly resource: number
  readonly soft: bigint
  readonly hard: bigint
}
export interface WireJob {
  /** absolute path inside the sandbox */
  readonly program: string
  readonly folder: string
  /** compiled system-call filter; empty where one is in force already */
  readonly filter: Uint8Array
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly limits: readonly WireLimit[]
  readonly tty: boolean
  /** descriptors 3 and 4 are the program's too */
  readonly privatePipes: boolean
  /** the program keeps the door, and waits there for what its call brings */
  readonly waits?: true
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
const limit = ({ resource, soft, hard }: WireLimit): Buffer => {
  const bytes = Buffer.alloc(20)
  bytes.writeUInt32LE(resource, 0)
  bytes.writeBigUInt64LE(soft, 4)
  bytes.writeBigUInt64LE(hard, 12)
  return bytes
}

/** What a call brings to a program that waits at the door. */
export const encodeCall = (env: Readonly<Record<string, string>>, folder: string): Buffer => {
  const body = Buffer.from(JSON.stringify({ env, folder }), "utf8")
  const head = Buffer.alloc(4)
  head.writeUInt32BE(body.length)
  return Buffer.concat([head, body])
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
    number(job.waits === true ? 1 : 0),
  ])
  return Buffer.concat([number(body.length), body])
}
