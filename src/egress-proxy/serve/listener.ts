/**
 * The proxy's own listener: a TCP address or a Unix socket.
 *
 * Guarantees: a Unix socket is for its owner only and is removed afterwards; one that a killed process left behind is
 * replaced, one that somebody listens on, or another kind of file, is not. A TCP listener is known as the proxy's
 * own for as long as it listens, so that no request leads back to it. Rejects when it cannot listen.
 */
import { chmod, lstat, unlink } from "node:fs/promises"
import { connect, createServer, type Server } from "node:net"
import { isMainThread } from "node:worker_threads"
import { addressText, type Listen, listenAddress } from "../policy/options.ts"
import { registerListener } from "../policy/self.ts"

interface Bound {
  readonly address: string
  readonly port?: number
  readonly close: () => Promise<void>
}

/** `serve` is told of the server once it listens. */
export async function listen(where: Listen, serve: (server: Server) => void): Promise<Bound> {
  const address = listenAddress(where)
  const server = createServer({ allowHalfOpen: true, noDelay: true })
  const begin = () =>
    new Promise<void>((resolve, reject) => {
      server.once("error", reject)
      const bind = () =>
        server.listen({ ...address, backlog: 1024 }, () => {
          server.off("error", reject)
          resolve()
        })
      if ("path" in address) forOwnerOnly(bind)
      else bind()
    })
  await begin().catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EADDRINUSE" || !("path" in address) || !(await isAbandoned(address.path))) throw error
    await unlink(address.path)
    await begin()
  })
  server.on("error", () => {})
  serve(server)
  const stopped = () => new Promise<void>((resolve) => server.close(() => resolve()))
  if ("path" in address) {
    await chmod(address.path, 0o600)
    const remove = async () => {
      await stopped()
      await unlink(address.path).catch(() => {})
    }
    return { address: `unix:${address.path}`, close: remove }
  }
  const own = server.address()
  if (own === null || typeof own === "string") throw new Error("a TCP listener without an address")
  const forget = registerListener(own.address, own.port)
  const stop = async () => {
    forget()
    await stopped()
  }
  return { address: addressText(own.address, own.port), port: own.port, close: stop }
}

/**
 * What this makes is its owner's alone from the first moment: between making it and changing its mode, others could
 * connect. Whether it may is the whole process's, so only for as long as binding takes, which is done at once.
 */
function forOwnerOnly(make: () => void): void {
  const before = isMainThread ? process.umask(0o177) : undefined
  try {
    make()
  } finally {
    if (before !== undefined) process.umask(before)
  }
}

/** Is this a Unix socket that nobody listens on? */
async function isAbandoned(path: string): Promise<boolean> {
  if (
    !(await lstat(path).then(
      (file) => file.isSocket(),
      () => false,
    ))
  )
    return false
  return new Promise((resolve) => {
    const probe = connect(path)
    probe
      .once("connect", () => resolve(false))
      .once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ECONNREFUSED"))
    probe.once("connect", () => probe.destroy())
  })
}
