/**
 * `caisson mcp`: the catalogue as an MCP server on stdin and stdout.
 *
 * Guarantees: stdout carries the protocol alone; what people should know goes to stderr. Calls are this OS user's, on one
 * workspace, in this process, and end with it.
 */
import { statSync } from "node:fs"
import { resolve } from "node:path"
import { processCaller } from "../../../host/access/caller.ts"
import { exit } from "../../exit.ts"
import { type HostFlags, withHost } from "../../host.ts"
import { onInterrupt } from "../../interrupt.ts"
import type { Terminal } from "../../terminal.ts"
import { says } from "../../texts.ts"
import { inline } from "../../visible.ts"

export interface McpFlags extends HostFlags {
  readonly workspace: string
  readonly user?: string
  readonly tag?: readonly string[]
  readonly find?: boolean
}

export const run = async (flags: McpFlags, version: string, terminal: Terminal): Promise<number> => {
  const workspace = resolve(flags.workspace)
  if (statSync(workspace, { throwIfNoEntry: false })?.isDirectory() !== true) {
    terminal.say(`caisson: there is no folder ${inline(workspace)}`)
    terminal.say("fix: name a folder that is there: --workspace DIR")
    return exit.usage
  }
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.closing}`))
  return await withHost({ ...flags, warm: true }, terminal, async (host) => {
    const { serveOnStdio } = await import("../../../mcp-server/stdio.ts")
    const caller = { ...processCaller(flags.user), how: "mcp" as const }
    const onFault = (error: unknown): void =>
      terminal.say(`caisson: ${inline(error instanceof Error ? error.message : String(error))}`)
    const options = {
      host,
      caller,
      version,
      workspace,
      ...(flags.tag === undefined ? {} : { tags: flags.tag }),
      ...(flags.find === true ? { finds: true } : {}),
    }
    await serveOnStdio(options, interrupt.signal, onFault)
    return exit.ok
  })
}
