/**
 * Bait on the host: secrets, listeners, sockets and a process that an escaped program would reach.
 *
 * Guarantees: everything carries one random token, so that a single look at a program's output tells whether it read any
 * of it; `disturbed` says what was reached or changed since the last look. Disposing removes all of it.
 * Does not: change a setting of the machine.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { randomInt, randomUUID } from "node:crypto"
import { createSocket, type Socket as UdpSocket } from "node:dgram"
import { once } from "node:events"
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:net"
import { hostname } from "node:os"
import { join } from "node:path"
import { createInterface, type Interface } from "node:readline"
import { fileURLToPath } from "node:url"
import { removeFolder, temporaryFolder } from "../support/sealed.ts"

export interface Ground extends AsyncDisposable {
  readonly token: string
  readonly folder: string
  /** a file that anybody may read and write, by mode */
  readonly secretFile: string
  readonly tcpPort: number
  /** 0 where the machine has no IPv6 loopback */
  readonly tcp6Port: number
  readonly udpPort: number
  readonly socketPath: string
  readonly abstractName: string
  readonly hostName: string
  readonly bait: { readonly pid: number; readonly key: number; readonly shm: number; readonly mq: string }
  disturbed(): Promise<readonly string[]>
}

const listening = async (server: Server, where: Parameters<Server["listen"]>[0]): Promise<number> => {
  server.listen(where)
  await once(server, "listening")
  const address = server.address()
  return typeof address === "object" && address !== null ? address.port : 0
}

const readLines = (lines: Interface): (() => Promise<string>) => {
  const iterator = lines[Symbol.asyncIterator]()
  return async () => {
    const { done, value } = await iterator.next()
    if (done === true) throw new Error("the bait process ended")
    return value
  }
}

export const openGround = async (): Promise<Ground> => {
  const token = `bait-${randomUUID()}`
  const folder = temporaryFolder("ground")
  // Everybody may read here: what keeps a program out is the sandbox, not the mode of a folder.
  chmodSync(folder, 0o755)
  const secretFile = join(folder, "secret")
  writeFileSync(secretFile, `${token}\n`, { mode: 0o666 })
  chmodSync(secretFile, 0o666)
  mkdirSync(join(folder, "sockets"))

  let reached: string[] = []
  const servers: Server[] = []
  const serve = async (what: string, where: Parameters<Server["listen"]>[0]): Promise<number> => {
    const server = createServer((socket) => {
      reached.push(what)
      socket.on("error", () => undefined).end(token)
    })
    servers.push(server)
    return listening(server, where)
  }
  const abstractName = `caisson-${randomUUID()}`
  const socketPath = join(folder, "sockets/agent.sock")
  const tcpPort = await serve("a TCP listener of the host", { port: 0, host: "127.0.0.1" })
  const tcp6Port = await serve("an IPv6 listener of the host", { port: 0, host: "::1" }).catch(() => 0)
  await serve("a Unix socket of the host", { path: socketPath })
  chmodSync(socketPath, 0o777)
  await serve("an abstract socket of the host", { path: `\0${abstractName}` })
  const udp: UdpSocket = createSocket("udp4").on("message", () => reached.push("a UDP socket of the host"))
  udp.bind(0, "127.0.0.1")
  await once(udp, "listening")

  const key = randomInt(0x10000000, 0x7fffffff)
  const child: ChildProcess = spawn(
    "/usr/bin/python3",
    [fileURLToPath(new URL("../../fixtures/escape/bait.py", import.meta.url)), String(key)],
    {
      stdio: ["pipe", "pipe", "inherit"],
      env: { CAISSON_BAIT: token },
    },
  )
  const line = readLines(createInterface({ input: child.stdout as NodeJS.ReadableStream }))
  const bait = JSON.parse(await line()) as { pid: number; shm: number; mq: string }
  process.env["CAISSON_BAIT"] = token

  return {
    token,
    folder,
    secretFile,
    tcpPort,
    tcp6Port,
    udpPort: udp.address().port,
    socketPath,
    abstractName,
    hostName: hostname(),
    bait: { ...bait, key },
    async disturbed() {
      const found = reached.map((what) => `${what} was reached`)
      reached = []
      if (readFileSync(secretFile, "utf8") !== `${token}\n` || (statSync(secretFile).mode & 0o777) !== 0o666) {
        found.push("a file of the host was changed")
      }
      if (child.exitCode !== null || child.signalCode !== null) return [...found, "a process of the host was ended"]
      child.stdin?.write("look\n")
      if (!(JSON.parse(await line()) as { memory: boolean }).memory) found.push("shared memory of the host was changed")
      return found
    },
    async [Symbol.asyncDispose]() {
      delete process.env["CAISSON_BAIT"]
      for (const server of servers) server.close()
      udp.close()
      const gone = child.exitCode === null && child.signalCode === null ? once(child, "exit") : undefined
      child.stdin?.end()
      await gone
      removeFolder(folder)
    },
  }
}
