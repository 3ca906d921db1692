/** A real PostgreSQL and a real Redis on loopback, with folders of their own. */
import { execFileSync } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { asNobody, host, type Running, startServer } from "./process.ts"

/** The newest installed major version's programs, which Debian keeps off the PATH. */
export const postgresPrograms = (): string | undefined => {
  const base = "/usr/lib/postgresql"
  const versions = existsSync(base)
    ? readdirSync(base)
        .map(Number)
        .filter(Number.isFinite)
        .sort((a, b) => b - a)
    : []
  return versions.map((version) => join(base, `${version}`, "bin")).find((folder) => existsSync(join(folder, "initdb")))
}
export const postgresThere = (): boolean => postgresPrograms() !== undefined

/** Trusts the role `tester`; over TCP only. */
export const startPostgres = (): Promise<Running> =>
  startServer({
    name: "postgres",
    ordinary: true,
    stopSignal: "SIGINT",
    command(port, folder) {
      const programs = postgresPrograms() ?? ""
      const cluster = join(folder, "cluster")
      const [program = "", ...args] = [
        ...asNobody(),
        join(programs, "initdb"),
        "-D",
        cluster,
        "-U",
        "tester",
        "--auth=trust",
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C",
      ]
      execFileSync(program, args, { stdio: "pipe", cwd: folder, env: { PATH: "/usr/bin:/bin", HOME: folder } })
      const settings = [
        "listen_addresses=127.0.0.1",
        `port=${port}`,
        "unix_socket_directories=",
        "fsync=off",
        "shared_buffers=16MB",
      ]
      return [join(programs, "postgres"), "-D", cluster, ...settings.flatMap((setting) => ["-c", setting])]
    },
  })

export const startRedis = (): Promise<Running> =>
  startServer({
    name: "redis",
    ordinary: true,
    command: (port, folder) => [
      "redis-server",
      "--port",
      `${port}`,
      "--bind",
      host,
      "--save",
      "",
      "--appendonly",
      "no",
      "--dir",
      folder,
    ],
  })
