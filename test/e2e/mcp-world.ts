/** A host whose only tools are served by an MCP server of its own, in a copy that a test may change. */
import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import type { CallOptions, Envelope } from "../../src/host/types.ts"
import type { HostOptions } from "../../src/host/types.ts"
import { createHost } from "../../src/host/index.ts"
import { openFolder, openWorld, type World } from "./host-world.ts"
import { removeFolder } from "../support/remove-folder.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/mcp")

export interface McpWorld extends World {
  readonly manifests: string
  /** Replace a text in a file of the manifests. */
  change(file: string, from: string | RegExp, to: string): void
  act(verb: string, args?: readonly string[], options?: Partial<CallOptions>): Promise<Envelope>
  /** Another host on the same data folder, as a process of its own would be. */
  reopen(): Promise<void>
}

interface McpWorldOptions {
  readonly settings?: string
  /** changes to the manifests before a host reads them */
  readonly before?: (change: McpWorld["change"], manifests: string) => void
}

export const openMcpWorld = async (
  era: "legacy" | "modern",
  { settings = "", before, ...options }: Omit<HostOptions, "config"> & McpWorldOptions = {},
): Promise<McpWorld> => {
  const own = openFolder()
  const manifests = join(own, "manifests")
  mkdirSync(manifests)
  cpSync(fixtures, manifests, { recursive: true })
  const change = (file: string, from: string | RegExp, to: string): void => {
    const path = join(manifests, file)
    const text = readFileSync(path, "utf8")
    const changed = text.replace(from, to)
    if (changed === text) throw new Error(`nothing to change in ${file}`)
    writeFileSync(path, changed)
  }
  if (era === "modern") change("notes/DRIVER.md", "--legacy", "--modern")
  before?.(change, manifests)
  const world = await openWorld(settings, { ...options, manifests: [manifests] })
  let { host } = world
  const call: World["call"] = (tool, input, { caller, approved = true, signal, ...more } = {}) =>
    host.call(
      { tool, input: input as never, workspace: world.workspace, ...more },
      { approved, ...(caller === undefined ? {} : { caller }), ...(signal === undefined ? {} : { signal }) },
    )
  return {
    ...world,
    get host() {
      return host
    },
    manifests,
    change,
    call,
    act: (verb, args, given = {}) =>
      host.call(
        {
          tool: "notes.act",
          input: { verb, ...(args === undefined ? {} : { args: [...args] }) },
          workspace: world.workspace,
        },
        { approved: true, ...given },
      ),
    async reopen() {
      await host.close()
      host = await createHost({
        ...options,
        data: world.data,
        manifests: [manifests],
        config: join(world.folder, "caisson.yaml"),
      })
    },
    async [Symbol.asyncDispose]() {
      await host.close()
      await world[Symbol.asyncDispose]()
      removeFolder(own)
    },
  }
}
