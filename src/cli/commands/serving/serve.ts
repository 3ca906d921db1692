/**
 * `caisson serve`: the daemon, in the foreground.
 *
 * Guarantees: says where it listens once it does, and nothing of a token but one that it made: the first of a data folder
 * that has none, told this once at a terminal or where that is asked for, else left in a file that this user alone can
 * read. The first SIGINT or SIGTERM lets calls settle, a second one ends at once; SIGHUP has manifests and config read
 * again. It cannot start: what is wrong and how to mend it, as of any command.
 */
import { rmSync, writeFileSync, writeSync } from "node:fs"
import type { Daemon } from "../../../daemon/daemon.ts"
import { firstTokenFile } from "../../../data-folder/paths.ts"
import { HostStartError } from "../../../host/start-error.ts"
import { reasons } from "../../../host/reasons.ts"
import { exit } from "../../exit.ts"
import type { HostFlags } from "../../host.ts"
import { onInterrupt } from "../../interrupt.ts"
import type { Terminal } from "../../terminal.ts"
import { says } from "../../texts.ts"
import { inline, visible } from "../../visible.ts"

export interface ServeFlags extends HostFlags {
  readonly listen?: string
  /** say a first token on stderr also where that is no terminal */
  readonly tellToken?: boolean
}

const firstToken = async (daemon: Daemon): Promise<string | undefined> => {
  const known = await daemon.host.tokens.list()
  if (!known.ok || known.value.length > 0) return undefined
  const made = await daemon.host.tokens.issue({
    label: "the first",
    agent: false,
    workspaces: "any",
    roles: ["caller", "approver", "operator"],
  })
  return made.ok ? made.value.token : undefined
}

const tell = async (daemon: Daemon, flags: ServeFlags, terminal: Terminal): Promise<void> => {
  terminal.say(`caisson: the daemon listens on ${inline(daemon.listens.join(" and on "))}`)
  const token = daemon.address === undefined ? undefined : await firstToken(daemon)
  if (token === undefined) return
  const tools = `${inline(daemon.address ?? "")}/v1/tools`
  if (flags.tellToken === true || process.stderr.isTTY) {
    terminal.say(`caisson: a first token, told this once: ${token}`)
    terminal.say(`caisson: try  curl -H "Authorization: Bearer $TOKEN" ${tools}`)
    return
  }
  // What is said here may be kept where others read it: a journal, a container's log.
  const file = firstTokenFile(daemon.host.data)
  rmSync(file, { force: true })
  writeFileSync(file, `${token}\n`, { mode: 0o600, flag: "wx" })
  terminal.say(
    `caisson: a first token lies in ${inline(file)}, which this user alone can read; take it and remove the file`,
  )
  terminal.say(`caisson: try  curl -H "Authorization: Bearer $(cat ${inline(file)})" ${tools}`)
}

const reloaded = async (daemon: Daemon, terminal: Terminal): Promise<void> => {
  const report = await daemon.reload()
  if (report.ok) return terminal.say(`caisson: read again: ${report.tools} tools, ${report.drivers} drivers`)
  terminal.say(`caisson: ${inline(report.error.message)}`)
  terminal.say(`fix: ${inline(report.error.hint)}`)
}

export const run = async (flags: ServeFlags, version: string, terminal: Terminal): Promise<number> => {
  const { openDaemon } = await import("../../../daemon/daemon.ts")
  let reload = (): void => undefined
  // At a terminal it ends with that, as any command does.
  const hangUp = process.stdin.isTTY ? [] : [() => reload()]
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.closing}`), ...hangUp)
  try {
    await using daemon = await openDaemon({
      ...(flags.manifests === undefined ? {} : { manifests: flags.manifests }),
      ...(flags.backend === undefined ? {} : { backend: flags.backend }),
      ...(flags.listen === undefined ? {} : { listen: flags.listen }),
      version,
      stderr: (line) => void writeSync(2, line),
      onFault: (error) => {
        if (process.env["CAISSON_DEBUG"])
          terminal.say(visible(error instanceof Error ? (error.stack ?? "") : String(error)))
      },
    })
    reload = () => void reloaded(daemon, terminal)
    await tell(daemon, flags, terminal)
    const { signal } = interrupt
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }))
    await daemon.close()
    return exit.ok
  } catch (error) {
    if (!(error instanceof HostStartError)) throw error
    terminal.say(`caisson: the daemon cannot start: ${inline(error.message)}`)
    terminal.say(`fix: ${inline(error.fix)}`)
    return reasons[error.code].exit
  }
}
