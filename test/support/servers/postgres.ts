/**
 * A PostgreSQL of a test's own that can be stopped, killed and started again: on loopback, in a folder of its own.
 *
 * Guarantees: it is ready when `start` resolves; all its processes are gone when `stop` does, and the folder when it is
 * disposed of. Roles are let in by SCRAM, so a wrong password is refused. Does not: wait for the disk (`fsync=off`); no
 * test takes the machine's power away.
 */
import { execFileSync, spawn, type ChildProcess } from "node:child_process"
import { chownSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Client } from "pg"
import { postgresPrograms } from "./databases.ts"
import { asNobody, freePort, host, nobodyIds } from "./process.ts"

export const noPostgres =
  postgresPrograms() === undefined ? "no PostgreSQL here: apt-get install -y postgresql" : undefined

export interface PostgresServer extends AsyncDisposable {
  readonly port: number
  readonly folder: string
  readonly start: () => Promise<void>
  /** `SIGINT` ends sessions, `SIGQUIT` all at once without a word (as a crash) */
  readonly stop: (signal?: "SIGINT" | "SIGQUIT") => Promise<void>
  /** makes one, and answers its URL */
  readonly database: () => Promise<string>
  /** as the server's own administrator */
  readonly ask: (sql: string, database?: string) => Promise<readonly Record<string, unknown>[]>
}

const PASSWORD = "not-a-secret"

export const startPostgresServer = async (more: readonly string[] = []): Promise<PostgresServer> => {
  const programs = postgresPrograms() ?? ""
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-postgres-")))
  const ids = nobodyIds()
  if (ids !== undefined) chownSync(folder, ids.uid, ids.gid)
  const cluster = join(folder, "cluster")
  const passwordFile = join(folder, "password")
  writeFileSync(passwordFile, `${PASSWORD}\n`, { mode: 0o644 })
  const env = { PATH: "/usr/bin:/bin", HOME: folder, LANG: "C.UTF-8" }
  const run = (program: string, args: readonly string[]): void => {
    const [first = "", ...rest] = [...asNobody(), join(programs, program), ...args]
    execFileSync(first, rest, { stdio: "pipe", cwd: folder, env })
  }
  const auth = ["--auth=scram-sha-256", `--pwfile=${passwordFile}`]
  run("initdb", ["-D", cluster, "-U", "tester", ...auth, "--no-sync", "-E", "UTF8", "--locale=C.UTF-8"])
  const port = await freePort()
  const url = (database: string): string => `postgres://tester:${PASSWORD}@${host}:${port}/${database}`
  const settings = [
    `listen_addresses=${host}`,
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    "fsync=off",
    "shared_buffers=32MB",
    ...more,
  ].flatMap((setting) => ["-c", setting])
  let child: ChildProcess | undefined
  let ended: Promise<void> = Promise.resolve()
  const ask: PostgresServer["ask"] = async (sql, database = "postgres") => {
    const client = new Client({ connectionString: url(database), ssl: false })
    client.on("error", () => undefined)
    try {
      await client.connect()
      return (await client.query<Record<string, unknown>>(sql)).rows
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  const start = async (): Promise<void> => {
    const [first = "", ...rest] = [...asNobody(), join(programs, "postgres"), "-D", cluster, ...settings]
    const own = spawn(first, rest, { cwd: folder, env, stdio: ["ignore", "ignore", "pipe"] })
    let said = ""
    own.stderr.on("data", (chunk: Buffer) => (said = `${said}${chunk.toString()}`.slice(-4_000)))
    let over = false
    ended = new Promise((resolve) => own.once("exit", () => resolve(void (over = true))))
    child = own
    const deadline = Date.now() + 60_000
    for (;;) {
      const isThere = await ask("SELECT 1").then(
        () => true,
        () => false,
      )
      if (isThere) return
      if (over || Date.now() > deadline) throw new Error(`PostgreSQL did not start: ${said}`)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }
  const stop: PostgresServer["stop"] = async (signal = "SIGINT") => {
    child?.kill(signal)
    await ended
    child = undefined
  }
  let databases = 0
  try {
    await start()
  } catch (error) {
    await stop("SIGQUIT")
    rmSync(folder, { recursive: true, force: true })
    throw error
  }
  return {
    port,
    folder,
    start,
    stop,
    ask,
    async database() {
      databases += 1
      await ask(`CREATE DATABASE store_${databases}`)
      return url(`store_${databases}`)
    },
    async [Symbol.asyncDispose]() {
      await stop("SIGQUIT")
      rmSync(folder, { recursive: true, force: true })
    },
  }
}
