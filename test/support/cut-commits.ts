/**
 * A way to a PostgreSQL that breaks at a commit: before the server hears of it, or after it was done and before anybody
 * hears of that. Reads what goes by only for the word.
 */
import { once } from "node:events"
import { connect, createServer, type Socket } from "node:net"

export interface CutCommits extends AsyncDisposable {
  readonly port: number
  /** the next commit is cut off there; resolves when it was */
  cut(where: "before" | "after"): Promise<void>
}

const COMMIT = Buffer.from("Q\0\0\0\u000BCOMMIT\0")

export const cutCommits = async (to: number): Promise<CutCommits> => {
  let next: { where: "before" | "after"; done: () => void } | undefined
  const sockets = new Set<Socket>()
  const server = createServer((client) => {
    const upstream = connect(to, "127.0.0.1")
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket
        .on("error", () => undefined)
        .once("close", () => {
          sockets.delete(socket)
          client.destroy()
          upstream.destroy()
        })
    }
    let cutting: (() => void) | undefined
    client.on("data", (chunk: Buffer) => {
      if (next === undefined || !chunk.includes(COMMIT)) return void upstream.write(chunk)
      const { where, done } = next
      next = undefined
      if (where === "after") cutting = done
      if (where === "after") return void upstream.write(chunk)
      client.destroy()
      done()
    })
    upstream.on("data", (chunk: Buffer) => {
      if (cutting === undefined) return void client.write(chunk)
      client.destroy()
      cutting()
    })
  }).listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  return {
    port: typeof address === "object" ? (address?.port ?? 0) : 0,
    cut: (where) => new Promise((done) => (next = { where, done })),
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}
