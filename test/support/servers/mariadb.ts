/**
 * A MariaDB of a test's own on loopback, in a folder of its own.
 *
 * Guarantees: it is ready when this resolves; its process is gone when it is disposed of, and the folder with it. Names are
 * let in by password. Does not: wait for the disk; no test takes the machine's power away.
 */
import { execFileSync } from "node:child_process"
import { existsSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createConnection } from "mysql2/promise"
import { asNobody, host, type Running, startServer } from "./process.ts"

const programOf = (name: string): string | undefined =>
  ["/usr/sbin", "/usr/bin", "/usr/local/sbin", "/usr/local/bin", "/usr/libexec"]
    .map((folder) => join(folder, name))
    .find((file) => existsSync(file))

const server = programOf("mariadbd")
const installer = programOf("mariadb-install-db")

export const noMariadb =
  server === undefined || installer === undefined
    ? "no MariaDB here: apt-get install -y --no-install-recommends mariadb-server"
    : undefined

export interface MariadbServer extends AsyncDisposable {
  readonly port: number
  readonly folder: string
  /** as the server's own administrator, several statements too */
  readonly ask: (sql: string) => Promise<readonly Record<string, unknown>[]>
}

export const ADMINISTRATOR = { user: "tester", password: "not-a-secret" } as const

/** With TLS where a certificate is given. */
export const startMariadb = async (tls?: { readonly cert: string; readonly key: string }): Promise<MariadbServer> => {
  const running: Running = await startServer({
    name: "mariadb",
    ordinary: true,
    command(port, folder) {
      const data = join(folder, "data")
      const init = join(folder, "init.sql")
      const { user, password } = ADMINISTRATOR
      writeFileSync(init, `GRANT ALL ON *.* TO '${user}'@'%' IDENTIFIED BY '${password}' WITH GRANT OPTION;\n`, {
        mode: 0o644,
      })
      const [first = "", ...rest] = [
        ...asNobody(),
        installer ?? "",
        "--no-defaults",
        `--datadir=${data}`,
        "--auth-root-authentication-method=normal",
        "--skip-test-db",
      ]
      execFileSync(first, rest, { stdio: "pipe", cwd: folder, env: { PATH: "/usr/bin:/bin:/usr/sbin", HOME: folder } })
      for (const [name, text] of Object.entries(tls ?? {})) writeFileSync(join(folder, name), text, { mode: 0o644 })
      return [
        server ?? "",
        "--no-defaults",
        `--datadir=${data}`,
        `--init-file=${init}`,
        `--bind-address=${host}`,
        `--port=${port}`,
        `--socket=${join(folder, "s")}`,
        `--pid-file=${join(folder, "pid")}`,
        "--skip-name-resolve",
        "--local-infile=1",
        "--secure-file-priv=",
        "--innodb-buffer-pool-size=16M",
        "--innodb-flush-log-at-trx-commit=0",
        "--character-set-server=utf8mb4",
        ...(tls === undefined ? [] : [`--ssl-cert=${join(folder, "cert")}`, `--ssl-key=${join(folder, "key")}`]),
      ]
    },
  })
  return {
    port: running.port,
    folder: running.folder,
    async ask(sql) {
      const client = await createConnection({ host, port: running.port, ...ADMINISTRATOR, multipleStatements: true })
      try {
        return (await client.query(sql))[0] as unknown as readonly Record<string, unknown>[]
      } finally {
        client.destroy()
      }
    },
    [Symbol.asyncDispose]: () => running[Symbol.asyncDispose](),
  }
}
