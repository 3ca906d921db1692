/**
 * A real sshd on a high port of loopback, with fresh keys, for the user that runs the test.
 *
 * Guarantees: the one key it accepts can run the one forced command, which says what was asked. The folder that
 * sshd wants below /run is made where it is missing, and removed again.
 */
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import { userInfo } from "node:os"
import { join } from "node:path"
import { host, type Running, startServer } from "./process.ts"

export interface RunningSshd extends Running {
  readonly user: string
  readonly clientKey: string
  /** a line of known_hosts for the name, at sshd's default port */
  knownHost(name: string): string
}

const privilegeFolder = "/run/sshd"

export async function startSshd(): Promise<RunningSshd> {
  const user = userInfo().username
  const made = process.getuid?.() === 0 && !existsSync(privilegeFolder)
  if (made) mkdirSync(privilegeFolder, { mode: 0o755 })
  const running = await startServer({
    name: "sshd",
    command(port, folder) {
      const [hostKey, clientKey] = [join(folder, "host"), join(folder, "client")]
      for (const file of [hostKey, clientKey]) execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-f", file])
      writeFileSync(
        join(folder, "authorized"),
        `command="echo forced: $SSH_ORIGINAL_COMMAND",restrict ${readFileSync(`${clientKey}.pub`, "utf8")}`,
        { mode: 0o600 },
      )
      const lines = [
        `Port ${port}`,
        `ListenAddress ${host}`,
        `HostKey ${hostKey}`,
        `AuthorizedKeysFile ${join(folder, "authorized")}`,
        "StrictModes no",
        "UsePAM no",
        "PasswordAuthentication no",
        "PermitRootLogin prohibit-password",
        "PidFile none",
        "PrintMotd no",
      ]
      writeFileSync(join(folder, "config"), `${lines.join("\n")}\n`)
      return ["/usr/sbin/sshd", "-D", "-e", "-f", join(folder, "config")]
    },
  })
  return {
    ...running,
    user,
    clientKey: readFileSync(join(running.folder, "client"), "utf8"),
    knownHost: (name) => `${name} ${readFileSync(join(running.folder, "host.pub"), "utf8")}`,
    async [Symbol.asyncDispose]() {
      await running[Symbol.asyncDispose]()
      if (made) rmdirSync(privilegeFolder)
    },
  }
}
