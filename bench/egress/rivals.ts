/**
 * squid and tinyproxy from Debian, each with a configuration of its own in a temporary folder and on a port of its own.
 *
 * Guarantees: installed only where missing and only as root; run in the foreground, without logs or cache, stopped by
 * pid. Where one cannot be had, its absence is said and it takes no part.
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { ensurePrograms, programAt } from "../../test/support/servers/packages.ts"
import { type Running, startServer } from "../../test/support/servers/process.ts"

const settings = {
  squid: (port: number, folder: string, _origin: number) =>
    [
      `http_port 127.0.0.1:${port}`,
      "acl everything port 1-65535",
      "http_access allow everything",
      "cache deny all",
      "access_log none",
      "cache_log /dev/null",
      "cache_store_log none",
      "pid_filename none",
      "shutdown_lifetime 0 seconds",
      `coredump_dir ${folder}`,
      "max_filedescriptors 16384",
      "pinger_enable off",
      "netdb_filename none",
    ].join("\n"),
  tinyproxy: (port: number, _folder: string, origin: number) =>
    [
      `Port ${port}`,
      "Listen 127.0.0.1",
      "Timeout 600",
      "MaxClients 2000",
      "LogLevel Critical",
      `ConnectPort ${origin}`,
    ].join("\n"),
}
const command = {
  squid: (file: string) => ["-N", "-n", `caisson${process.pid}`, "-f", file],
  tinyproxy: (file: string) => ["-d", "-c", file],
}

export type Rival = keyof typeof settings

export async function startRival(name: Rival, originPort: number): Promise<Running | string> {
  const missing = ensurePrograms({ [name]: name })
  if (missing !== undefined) return missing
  try {
    return await startServer({
      name,
      ordinary: true,
      command(port, folder) {
        const file = join(folder, `${name}.conf`)
        writeFileSync(file, `${settings[name](port, folder, originPort)}\n`)
        return [programAt(name) ?? name, ...command[name](file)]
      },
    })
  } catch (error) {
    return (error as Error).message
  }
}
