/**
 * Opening the host for one command, and closing it whatever happens.
 *
 * Guarantees: the host's code is loaded only by commands that need it; a host that cannot open ends the command with
 * the reason's exit code, what is wrong and how to mend it, and leaves nothing open.
 */
import { existsSync } from "node:fs"
import type { CallError, Host } from "../host/types.ts"
import { reasons } from "../host/reasons.ts"
import { exit } from "./exit.ts"
import { diagnosticLines } from "./render/diagnostics.ts"
import { type Terminal } from "./terminal.ts"
import { hostTyped } from "./typed-again.ts"
import { inline, visible } from "./visible.ts"

export interface HostFlags {
  readonly manifests?: readonly string[]
  readonly backend?: "namespace" | "docker"
  /** a call is certain to follow */
  readonly warm?: boolean
}

/** What a command that answers with an envelope says of a host that cannot start: no call was made, so none is named. */
type StartFailed = (error: CallError) => void

const tellStart = async (error: unknown, terminal: Terminal, failed: StartFailed | undefined): Promise<number> => {
  const { HostStartError } = await import("../host/start-error.ts")
  if (!(error instanceof HostStartError)) throw error
  const { code, message, fix } = error
  failed?.({
    code,
    class: reasons[code].class,
    message: `the host cannot start: ${message}`,
    retryable: false,
    hint: fix,
    details: {},
  })
  terminal.say(`caisson: the host cannot start: ${inline(error.message)}`)
  for (const diagnostic of error.diagnostics)
    for (const line of diagnosticLines(diagnostic, terminal.paint)) terminal.say(line)
  terminal.say(`fix: ${inline(error.fix)}`)
  if (process.env["CAISSON_DEBUG"]) terminal.say(visible(error.stack ?? ""))
  return reasons[error.code].exit
}

export const withHost = async (
  flags: HostFlags,
  terminal: Terminal,
  use: (host: Host) => Promise<number>,
  failed?: StartFailed,
): Promise<number> => {
  const missing = flags.manifests?.find((folder) => !existsSync(folder))
  if (missing !== undefined) {
    terminal.say(`caisson: there are no manifests at ${inline(missing)}`)
    return exit.usage
  }
  const { createHost } = await import("../host/index.ts")
  let host: Host
  try {
    host = await createHost({
      ...(flags.manifests === undefined ? {} : { manifests: flags.manifests }),
      ...(flags.backend === undefined ? {} : { backend: flags.backend }),
      warm: flags.warm ?? false,
    })
  } catch (error) {
    return tellStart(error, terminal, failed)
  }
  try {
    return await use(hostTyped(host, flags.manifests))
  } finally {
    await host.close()
  }
}
