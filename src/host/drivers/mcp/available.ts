/**
 * Whether an mcp driver's server is there, and is what the driver says it is.
 *
 * Guarantees: a server that is started here is looked at once for each manifest and program, in a sandbox without network
 * or secrets: every tool that the driver names is there and fits its contract, or the driver is unavailable. One that
 * cannot be looked at so, because it has declared that it needs its network, is looked at in each call alone.
 */
import { createHash } from "node:crypto"
import path from "node:path"
import type { DriverContract, McpSpec } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import { installFix } from "../install-fix.ts"
import type { Binding, DriverAvailability, Surroundings } from "../kind.ts"
import { type Located, locateSystemProgram, locateVendoredProgram, type Program } from "../program.ts"
import { sandboxOf, startOf, type StartedServer } from "./server.ts"
import { inspect } from "./talk.ts"

const missing = (reason: string, fix: string): DriverAvailability => ({
  available: false,
  code: "tool_unavailable",
  reason,
  fix,
})

/** Of a kind of server that this host does not run. */
const notServed = ({ server, connection }: McpSpec): DriverAvailability | undefined => {
  if (server.kind !== "binary")
    return missing(`this host does not run MCP servers of kind ${server.kind} yet`, "use a server of kind binary")
  if (connection.keepalive)
    return missing(
      "the driver asks for a server that is kept between calls (`keepalive`), and this host starts one for each call",
      "take `keepalive` out of `connection_options`, where the server keeps nothing that the next call needs",
    )
  return undefined
}

const locate = (driver: DriverContract, file: string, folders: readonly string[]): Located =>
  file.includes("/") && !path.isAbsolute(file)
    ? locateVendoredProgram(file, path.dirname(driver.source.file), folders)
    : locateSystemProgram(file, folders)

const keyOf = (driver: DriverContract, program: Program, bindings: readonly Binding[]): string =>
  createHash("sha256")
    .update(
      JSON.stringify([
        "tools",
        driver.source.digest,
        program.path,
        program.identity,
        bindings.map(({ tool }) => tool.source.digest),
      ]),
    )
    .digest("hex")

const FITS = "fits"

/** Undefined: it is as the driver says, or nobody can tell without its network. */
const fault = async (
  driver: DriverContract,
  spec: McpSpec,
  server: StartedServer,
  program: Program,
  here: Surroundings,
  bindings: readonly Binding[],
): Promise<Failure | undefined> => {
  const key = keyOf(driver, program, bindings)
  if ((await here.remembered?.get(key)) === FITS) return undefined
  const find = (name: string): Program | undefined => {
    const located = locateSystemProgram(name, here.folders)
    return located.ok ? located.program : undefined
  }
  const { argv, executables, env } = startOf(program, server, sandboxOf(spec, undefined), find)
  const looked = await here.talk({
    driver,
    argv,
    executables,
    env,
    converse: (session) => inspect(session, spec, bindings),
  })
  if (looked.ok) {
    await here.remembered?.set(key, FITS)
    return undefined
  }
  const needsMore = driver.egress.length > 0 || driver.auth !== undefined
  return needsMore && looked.code !== "tool_unavailable" ? undefined : looked
}

export const available = async (
  driver: DriverContract,
  spec: McpSpec,
  here: Surroundings,
  bindings: readonly Binding[],
): Promise<DriverAvailability> => {
  const refused = notServed(spec)
  if (refused !== undefined) return refused
  const { server } = spec
  if (server.kind !== "binary") return missing("", "")
  const located = locate(driver, server.path, here.folders)
  if (!located.ok) return missing(located.reason, installFix(driver))
  const { program } = located
  const found = await fault(driver, spec, server, program, here, bindings)
  if (found === undefined) return { available: true, program }
  const said = found.details["stderr"]
  return missing(
    `its server is not what the driver says: ${found.message}${typeof said === "string" ? ` (${said.slice(-300)})` : ""}`,
    found.hint ?? "start the server by hand and see what it says",
  )
}
