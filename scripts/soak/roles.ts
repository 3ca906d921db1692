/**
 * The processes of a soak: proxy, origin and clients, each started by the soak and spoken to over IPC.
 *
 * Every behaviour ends by itself or with its process; nothing here judges, the soak does.
 */
import { connect, createServer, type Socket } from "node:net"
import koffi from "koffi"
import { createEgressProxy } from "../../src/egress-proxy/index.ts"

export const declared = "origin.soak:7000"

async function proxy(originPort: number): Promise<void> {
  const made = await createEgressProxy({
    egress: [`tcp://${declared}`, "plain.soak:80"],
    services: {
      "origin.soak": { address: "127.0.0.1", port: originPort },
      "plain.soak": { address: "127.0.0.1", port: originPort },
    },
    budgets: { idleTimeoutMs: 600_000, connectTimeoutMs: 2_000 },
    limits: { headMs: 1_000, silentMs: 2_000 },
    listen: "127.0.0.1:0",
  })
  // Memory that was freed but is kept for later by the collector or the allocator is nobody's leak.
  const trim = koffi.load(null).func("int malloc_trim(size_t pad)") as (pad: number) => number
  process.on("message", () => {
    for (let round = 0; round < 3; round += 1)
      globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" })
    trim(0)
    const { rss, heapUsed, external } = process.memoryUsage()
    process.send?.({ counters: made.counters(), rss, heapUsed, external })
  })
  process.send?.(made.port)
}

/** The first line says what becomes of a connection; a request head gets a small response. */
function origin(port: number): void {
  const block = Buffer.alloc(65_536, "o")
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on("error", () => {})
    socket.on("end", () => socket.end())
    socket.once("data", (first) => {
      const [word = "", count = "0"] = first.toString("latin1").split(/[ \n]/)
      if (word === "pour") pour(socket, Number(count))
      else if (word === "die") setTimeout(() => socket.resetAndDestroy(), Number(count))
      else if (word === "GET" || word === "POST") {
        const answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        socket.write(answer)
        socket.on("data", () => socket.write(answer))
      } else if (word !== "hang") {
        socket.write(first)
        socket.on("data", (chunk) => socket.write(chunk))
      }
    })
  })
  const pour = (socket: Socket, bytes: number): void => {
    let left = bytes
    const go = (): void => {
      for (let room = true; room && left > 0 && !socket.destroyed; left -= block.length)
        room = socket.write(block.subarray(0, Math.min(left, block.length)))
      if (left <= 0) socket.end()
      else socket.once("drain", go)
    }
    go()
  }
  server.listen(port, "127.0.0.1", 4096, () => {
    const address = server.address()
    process.send?.(typeof address === "object" && address !== null ? address.port : 0)
  })
}

/** Opens a tunnel; undefined when it was not to be. */
const tunnel = (port: number, target = declared): Promise<Socket | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true })
    socket.on("error", () => {})
    socket.once("close", () => resolve(undefined))
    socket.write(`CONNECT ${target} HTTP/1.1\r\n\r\n`)
    socket.once("data", (head) => resolve(head.toString("latin1").includes(" 200 ") ? socket : void socket.destroy()))
  })

/** Holds many tunnels; the words `open N`, `check`, `close` move it on. */
function holder(ports: readonly number[]): void {
  const held: Socket[] = []
  const open = async (count: number): Promise<number> => {
    const lane = async (at: number): Promise<void> => {
      for (let next = at; next < count; next += 64) {
        const socket = await tunnel(ports[next % ports.length] ?? 0)
        if (socket !== undefined) held.push(socket)
      }
    }
    await Promise.all(Array.from({ length: 64 }, (_, at) => lane(at)))
    return held.length
  }
  const check = async (): Promise<number> => {
    const echoes = held
      .filter((_, at) => at % 100 === 0)
      .map(
        (socket) =>
          new Promise<number>((resolve) => {
            socket.once("data", () => resolve(1)).once("close", () => resolve(0))
            socket.write("still there?")
          }),
      )
    return (await Promise.all(echoes)).reduce((sum, one) => sum + one, 0)
  }
  const close = async (): Promise<number> => {
    const closed = held.splice(0).map(
      (socket, at) =>
        new Promise((resolve) => {
          socket.once("close", resolve)
          if (at % 3 === 0) socket.resetAndDestroy()
          else if (at % 3 === 1) socket.end().resume()
          else socket.destroy()
        }),
    )
    return (await Promise.all(closed)).length
  }
  process.on("message", ([word, count]: [string, number]) => {
    void (word === "open" ? open(count) : word === "check" ? check() : close()).then((answer) => process.send?.(answer))
  })
  process.send?.("ready")
}

/** Many clients at once, each doing one thing after the other, well-behaved and not. */
function rabble(ports: readonly number[]): void {
  let done = 0
  const port = (): number => ports[Math.floor(Math.random() * ports.length)] ?? 0
  const over = (socket: Socket | undefined, ms: number): Promise<unknown> =>
    new Promise((resolve) =>
      socket === undefined || socket.destroyed
        ? resolve(0)
        : socket.once("close", resolve).setTimeout(ms, () => socket.destroy()),
    )
  const raw = (text: string, ms = 3_000): Promise<unknown> => {
    const socket = connect({ port: port(), host: "127.0.0.1" }).on("error", () => {})
    socket.resume().write(text, "latin1")
    return over(socket, ms)
  }
  const inTunnel = async (text: string, then: (socket: Socket) => void, ms = 4_000): Promise<unknown> => {
    const socket = await tunnel(port())
    socket?.resume().write(text)
    if (socket !== undefined) then(socket)
    return over(socket, ms)
  }
  const acts: readonly (() => Promise<unknown>)[] = [
    () => inTunnel("echo me", (socket) => socket.once("data", () => socket.end())),
    () => inTunnel(`pour ${1 << 20}\n`, (socket) => socket.once("end", () => socket.end())),
    () => inTunnel(`pour ${1 << 24}\n`, (socket) => socket.once("data", () => socket.resetAndDestroy())),
    () => inTunnel(`pour ${1 << 22}\n`, (socket) => socket.pause().setTimeout(300, () => socket.destroy())),
    () => inTunnel("die 5\n", () => {}),
    () => inTunnel("hang\n", (socket) => socket.setTimeout(200, () => socket.destroy())),
    () => inTunnel("half", (socket) => socket.end()),
    () => raw("GET http://plain.soak/ HTTP/1.1\r\nHost: plain.soak\r\nConnection: close\r\n\r\n"),
    () =>
      raw(
        "GET http://plain.soak/ HTTP/1.1\r\nHost: plain.soak\r\n\r\nGET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nConnection: close\r\n\r\n",
      ),
    () => raw("POST http://plain.soak/ HTTP/1.1\r\nHost: plain.soak\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", 300),
    () => raw("CONNECT evil.test:443 HTTP/1.1\r\n\r\n"),
    () => raw("CONNECT origin.soak", 200),
    () => raw("\x05\x01\0\x05\x01\0\x03\x0borigin.soak\x1b\x58hang\n", 200),
    () => raw("\x16\x03\x01nonsense"),
    () => raw("", 50),
  ]
  const lane = async (): Promise<never> => {
    for (;;) {
      await acts[Math.floor(Math.random() * acts.length)]?.()
      done += 1
    }
  }
  process.on("message", () => process.send?.(done))
  for (let lanes = 0; lanes < 48; lanes += 1) void lane()
  process.send?.("ready")
}

const [role = "", ...words] = process.argv.slice(2)
process.once("disconnect", () => process.exit())
if (role === "proxy") await proxy(Number(words[0]))
if (role === "origin") origin(Number(words[0]))
if (role === "holder") holder(words.map(Number))
if (role === "rabble") rabble(words.map(Number))
