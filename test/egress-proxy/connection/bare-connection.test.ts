/** A line by itself, against a peer on node:net: what its ends look like from the other side. */
import { readdirSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { Deadline } from "../../../src/egress-proxy/connection/deadline.ts"
import { dialBare } from "../../../src/egress-proxy/dial/dial-bare.ts"
import type { BareConnection, BareUser } from "../../../src/egress-proxy/connection/bare-connection.ts"
import { ReadMemory } from "../../../src/egress-proxy/connection/read-memory.ts"
import { startUpstream, until, type Upstream } from "../harness.ts"

const much = Buffer.alloc(40_000_000, "line")

/** A peer that reads when it is told to, and how its connection ended. */
async function peer() {
  const seen = { bytes: 0, end: undefined as string | undefined }
  const upstream = await startUpstream((socket) => {
    socket.pause()
    socket.on("data", (chunk) => {
      seen.bytes += chunk.length
    })
    socket.on("end", () => {
      seen.end ??= "ended"
    })
    socket.on("error", (error: NodeJS.ErrnoException) => {
      seen.end ??= error.code ?? ""
    })
  })
  const read = () => {
    for (const socket of upstream.sockets) socket.resume()
  }
  return { upstream, seen, read, [Symbol.asyncDispose]: () => upstream[Symbol.asyncDispose]() }
}

async function dial(upstream: Pick<Upstream, "port">): Promise<BareConnection> {
  const deadline = new Deadline(5_000)
  const line = await new Promise<BareConnection | undefined>((resolve) =>
    dialBare("127.0.0.1", upstream.port, deadline, resolve),
  )
  deadline.settle()
  return line ?? expect.unreachable()
}

const user = (over: Partial<BareUser> = {}): BareUser => ({
  onBytes() {},
  onEnd() {},
  onDrain() {},
  ...over,
})

describe("a line", () => {
  it("says that bytes wait, and when they have left", async () => {
    await using other = await peer()
    const line = await dial(other.upstream)
    let drained = false
    line.use(user({ onDrain: () => (drained = true) }))
    expect([line.write(Buffer.from("a few")), line.write(much), line.draining]).toEqual([true, false, true])
    await until(() => other.upstream.sockets.size === 1, "the peer is there")
    expect(drained).toBe(false)
    other.read()
    await until(() => drained, "all has left")
    expect(line.draining).toBe(false)
    line.destroy()
    await until(() => other.seen.end !== undefined, "the peer knows")
    expect(other.seen).toEqual({ bytes: much.length + 5, end: "ended" })
  })

  it.each(["end", "finish"] as const)("delivers all before its %s", async (how) => {
    await using other = await peer()
    const line = await dial(other.upstream)
    line.write(much)
    line[how]()
    expect(line.destroyed).toBe(false)
    await until(() => other.upstream.sockets.size === 1, "the peer is there")
    other.read()
    await until(() => other.seen.end !== undefined, "the peer knows")
    expect(other.seen).toEqual({ bytes: much.length, end: "ended" })
    line.destroy()
  })

  it("breaks off with a reset, also when its end was asked for and bytes wait", async () => {
    await using other = await peer()
    const line = await dial(other.upstream)
    let closed = 0
    line.on("close", () => (closed += 1))
    line.write(much)
    line.end()
    await until(() => other.upstream.sockets.size === 1, "the peer is there")
    line.resetAndDestroy()
    line.destroy()
    expect([line.destroyed, closed]).toEqual([true, 1])
    other.read()
    await until(() => other.seen.end !== undefined, "the peer knows")
    expect(other.seen.end).toBe("ECONNRESET")
  })

  it("is gone for its peer also when it breaks off while its end is on its way", async () => {
    await using other = await peer()
    const held = (): number => readdirSync("/proc/self/fd").length
    const before = held()
    const line = await dial(other.upstream)
    line.end()
    line.resetAndDestroy()
    await until(() => other.upstream.sockets.size === 1, "the peer is there")
    other.read()
    await until(() => other.seen.end !== undefined, "the peer knows")
    for (const socket of other.upstream.sockets) socket.end()
    await until(() => other.upstream.sockets.size === 0, "nothing holds it open")
    await until(() => held() <= before, "no descriptor is left")
  })

  it("takes memory from the allowance while it reads much, reads on without, and gives it back", async () => {
    const memory = new ReadMemory(1_000_000)
    const read = async (): Promise<{ readonly left: number; readonly largest: number; readonly bytes: number }> => {
      await using upstream = await startUpstream((socket) => socket.end(much))
      const line = await dial(upstream)
      let [largest, bytes, ended] = [0, 0, false]
      line.use(
        user({
          onBytes(chunk) {
            largest = Math.max(largest, chunk.length)
            bytes += chunk.length
          },
          onEnd: () => (ended = true),
        }),
      )
      line.readIntoOwn(memory)
      line.resume()
      await until(() => ended, "all is read")
      const { left } = memory
      line.destroy()
      return { left, largest, bytes }
    }
    expect(await read()).toEqual({ left: 1_000_000 - 262_144, largest: 262_144, bytes: much.length })
    expect(memory.left).toBe(1_000_000)
    expect(memory.take(950_000)).toBe(true)
    expect(await read()).toEqual({ left: 50_000, largest: 16_384, bytes: much.length })
    expect(memory.left).toBe(50_000)
  })

  it("becomes a socket that has every byte, and passes its own end on", async () => {
    await using upstream = await startUpstream((socket) => {
      socket.write("before")
      socket.once("data", () => socket.end("after"))
    })
    const line = await dial(upstream)
    const heard: string[] = []
    line.use(
      user({
        onBytes(bytes) {
          heard.push(String(bytes))
        },
      }),
    )
    line.resume()
    await until(() => heard.join("") === "before", "a line hears")
    let closed = false
    line.on("close", () => (closed = true))
    const socket = line.toSocket()
    expect(line.toSocket()).toBe(socket)
    socket.on("data", (chunk: Buffer) => heard.push(String(chunk)))
    socket.on("end", () => socket.end())
    socket.resume()
    socket.write("go")
    await until(() => closed, "the line knows that its socket is closed")
    expect([heard.join(""), line.destroyed]).toEqual(["beforeafter", true])
  })

  it("that is closed becomes a socket that is closed", async () => {
    await using other = await peer()
    const line = await dial(other.upstream)
    line.destroy()
    expect([line.toSocket().destroyed, line.write(much), line.draining]).toEqual([true, true, false])
    line.toSocket().end("nobody hears this")
  })

  it("is nothing by its deadline, nor where nobody listens", async () => {
    const { upstream } = await peer()
    await upstream[Symbol.asyncDispose]()
    const dialled = (ms: number) => {
      const deadline = new Deadline(ms)
      if (ms === 0) deadline.expire()
      return new Promise<BareConnection | undefined>((resolve) =>
        dialBare("127.0.0.1", upstream.port, deadline, resolve),
      ).finally(() => deadline.settle())
    }
    expect([await dialled(5_000), await dialled(0)]).toEqual([undefined, undefined])
  })
})
