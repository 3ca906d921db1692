/**
 * A program inside a real sandbox that does what a test says: dial, look up, send a datagram, run a command.
 *
 * Guarantees: everything it does happens in the sandbox's own namespaces, as the tool's user; a connection it dials
 * comes out as a socket whose bytes, half-close and reset are those inside. One sandbox serves many cases.
 * Assumes: /usr/bin/python3. The control listener is one more port of the channel, kept from whoever serves it.
 */
import { readFileSync } from "node:fs"
import type { Socket } from "node:net"
import type { Channel, CollectedSandbox, SandboxBackend } from "../../src/sandbox/backend.ts"
import { prepareFor, type ProfileOverrides, profileOf, removeFolder, temporaryFolder } from "./sealed.ts"

export const proxyPort = 3128
const controlPort = 7
const program = "/usr/bin/python3"
const source = readFileSync(new URL("./occupant.py", import.meta.url), "utf8")

export interface Ran {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}
export interface RunOptions {
  readonly env?: Readonly<Record<string, string>>
  /** start from an empty environment instead of the profile's */
  readonly bare?: boolean
  readonly stdin?: string
  readonly seconds?: number
}
export interface Occupant extends AsyncDisposable {
  readonly channel: Channel
  readonly workspace: string
  /** Rejects with the name of the error that the dial met inside. */
  dial(address: string, port: number): Promise<Socket>
  lookup(name: string): Promise<readonly string[]>
  datagram(address: string, port: number, payload: Uint8Array): Promise<Buffer>
  run(argv: readonly string[], options?: RunOptions): Promise<Ran>
  /** Ends it; how the sandbox ended and what the kernel's taps saw. */
  leave(): Promise<CollectedSandbox>
}

/** What failed inside, by the name that Python has for it. */
export class InsideError extends Error {
  readonly kind: string
  constructor(kind: string, message: string) {
    super(`${kind}: ${message}`)
    this.kind = kind
  }
}

export interface OccupantOptions extends ProfileOverrides {
  readonly ports?: readonly number[]
  readonly dns?: boolean
}

export async function occupy(
  backend: SandboxBackend,
  { ports = [80, 443, 5432], dns = true, ...overrides }: OccupantOptions = {},
): Promise<Occupant> {
  const workspace = temporaryFolder("occupied")
  const profile = profileOf({
    ...overrides,
    program,
    network: { proxyPort, transparentPorts: [...ports, controlPort], dns },
    limits: { wallMs: 600_000, pids: 512, openFiles: 1024, memoryBytes: 1024 * 1024 * 1024, ...overrides.limits },
  })
  const sandbox = await prepareFor(backend, profile)
  if (!sandbox.ok) throw new Error(`${sandbox.control}: ${sandbox.message}`)
  if (sandbox.channel === "none") throw new Error("a sandbox without a channel")
  const transparent = new Map(sandbox.channel.transparent)
  const control = transparent.get(controlPort)
  transparent.delete(controlPort)
  if (control === undefined) throw new Error("no control listener")

  const idle: Socket[] = []
  const waiting: ((socket: Socket) => void)[] = []
  const open = new Set<Socket>()
  control.on("connection", (socket) => {
    socket.allowHalfOpen = true
    socket.setNoDelay(true)
    socket.on("error", () => {})
    open.add(socket)
    socket.on("close", () => open.delete(socket))
    const next = waiting.shift()
    if (next === undefined) idle.push(socket)
    else next(socket)
  })
  const cancel = new AbortController()
  const running = sandbox.run({ argv: [program, "-c", source], workspace }, cancel.signal)
  const broken = running.then((exited) => {
    throw new Error(
      exited.ok
        ? `the occupant is gone (${JSON.stringify(exited.ending)}): ${Buffer.from(exited.stderr.bytes).toString()}`
        : exited.message,
    )
  })
  broken.catch(() => {})

  const command = async (
    ...words: readonly unknown[]
  ): Promise<{ readonly socket: Socket; readonly value: unknown }> => {
    const ready = idle.shift() ?? new Promise<Socket>((resolve) => waiting.push(resolve))
    const socket = await Promise.race([ready, broken])
    socket.write(`${JSON.stringify(words)}\n`)
    const line = await Promise.race([readLine(socket), broken])
    const answer = JSON.parse(line) as { value?: unknown; error?: string; message?: string }
    if (answer.error !== undefined) {
      socket.destroy()
      throw new InsideError(answer.error, answer.message ?? "")
    }
    return { socket, value: answer.value }
  }
  const ask = async (...words: readonly unknown[]): Promise<unknown> => {
    const { socket, value } = await command(...words)
    socket.destroy()
    return value
  }
  const text = (base64: string): string => Buffer.from(base64, "base64").toString("utf8")
  let left: Promise<CollectedSandbox> | undefined
  const leave = async (): Promise<CollectedSandbox> => {
    cancel.abort()
    const exited = await running
    for (const socket of open) socket.destroy()
    if (!exited.ok) throw new Error(exited.message)
    return exited
  }
  return {
    channel: { ...sandbox.channel, transparent },
    workspace,
    dial: async (address, port) => (await command("tcp", address, port)).socket,
    lookup: async (name) => (await ask("lookup", name)) as string[],
    datagram: async (address, port, payload) =>
      Buffer.from((await ask("datagram", address, port, Buffer.from(payload).toString("base64"))) as string, "base64"),
    async run(argv, { env = {}, bare = false, stdin = "", seconds = 60 } = {}) {
      const ran = (await ask(
        "run",
        argv,
        bare ? { CLEAR: "1", ...env } : env,
        Buffer.from(stdin).toString("base64"),
        seconds,
      )) as Ran
      return { code: ran.code, stdout: text(ran.stdout), stderr: text(ran.stderr) }
    },
    leave: () => (left ??= leave()),
    async [Symbol.asyncDispose]() {
      const exited = await (left ??= leave())
      await exited.discard()
      removeFolder(workspace)
    },
  }
}

/** The first line; what follows it stays in the socket, which flows once somebody listens. */
const readLine = (socket: Socket): Promise<string> =>
  new Promise((resolve, reject) => {
    let seen = Buffer.alloc(0)
    const onClose = (): void => reject(new Error("the occupant hung up"))
    const onReadable = (): void => {
      for (let chunk = socket.read() as Buffer | null; chunk !== null; chunk = socket.read() as Buffer | null)
        seen = Buffer.concat([seen, chunk])
      const end = seen.indexOf(10)
      if (end < 0) return
      socket.off("readable", onReadable).off("close", onClose)
      if (end + 1 < seen.length) socket.unshift(seen.subarray(end + 1))
      resolve(seen.toString("utf8", 0, end))
    }
    socket.on("readable", onReadable).on("close", onClose)
  })
