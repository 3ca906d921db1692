/**
 * Whether an mcp driver's server is there, and is what the driver says it is.
 *
 * Guarantees: a server that is started here is looked at once for each manifest and program, in a sandbox without network
 * or secrets: every tool that the driver names is there and fits its contract, or the driver is unavailable, which is
 * remembered for a while. One that cannot be looked at so, because it has declared that it needs its network, is looked at
 * in each call alone, as are all of them.
 */
import { createHash } from "node:crypto"
import type { DriverContract, McpSpec } from "../../../manifest/types.ts"
import { intersectEgress, parseEgressEntry } from "../../../manifest/values/egress-entry.ts"
import type { Failure } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { Binding, DriverAvailability, Surroundings } from "../kind.ts"
import { locateSystemProgram, type Program } from "../program/program.ts"
import { locate } from "./locate.ts"
import { type FoundServer, sandboxOf, startOf, type StartedServer } from "./server.ts"
import { inspect } from "./talk.ts"

const missing = (reason: string, fix: string): DriverAvailability => ({
  available: false,
  code: "tool_unavailable",
  reason,
  fix,
})

interface Looked {
  readonly driver: DriverContract
  readonly spec: McpSpec
  readonly server: StartedServer
  readonly found: FoundServer
  readonly edition: string
  readonly bindings: readonly Binding[]
}

const keyOf = ({ driver, edition, bindings }: Looked): string =>
  createHash("sha256")
    .update(JSON.stringify(["tools", driver.source.digest, edition, bindings.map(({ tool }) => tool.source.digest)]))
    .digest("hex")

const FITS = "fits"

/** Undefined: it is as the driver says, or nobody can tell without its network. */
const look = async (what: Looked, here: Surroundings): Promise<Failure | undefined> => {
  const { driver, spec, server, found, bindings } = what
  const find = (name: string): Program | undefined => {
    const located = locateSystemProgram(name, here.folders)
    return located.ok ? located.program : undefined
  }
  const start = startOf(found, server, sandboxOf(spec, undefined), find)
  if (start === undefined) return undefined
  const { argv, executables, env, startsIn } = start
  const looked = await here.talk({
    driver,
    argv,
    executables,
    env,
    ...(startsIn === undefined ? {} : { startsIn }),
    converse: (session) => inspect(session, spec, bindings),
  })
  if (looked.ok) return undefined
  const needsMore = driver.egress.length > 0 || driver.auth !== undefined
  return needsMore && looked.code !== "tool_unavailable" ? undefined : looked
}

/** Under way or not as it should be, of this process. */
const faults = new Map<string, Promise<Failure | undefined>>()

const faultOf = (what: Looked, here: Surroundings): Promise<Failure | undefined> => {
  const key = keyOf(what)
  const known = faults.get(key)
  if (known !== undefined) return known
  const looking = (async () => {
    if ((await here.remembered?.get(key)) === FITS) return undefined
    const fault = await look(what, here)
    if (fault === undefined) await here.remembered?.set(key, FITS)
    return fault
  })()
  faults.set(key, looking)
  looking.then(
    (fault) => {
      if (fault === undefined) faults.delete(key)
      else setTimeout(() => faults.delete(key), hostLimits.probeRetryMs.value).unref()
    },
    () => faults.delete(key),
  )
  return looking
}

/** A server whose own driver does not declare it could never be asked. */
const reach = (driver: DriverContract, url: string): DriverAvailability => {
  const { hostname, port } = new URL(url)
  const target = `${hostname}:${port === "" ? 443 : port}`
  const own = parseEgressEntry(target)
  if (own.ok && intersectEgress([own.entry], driver.egress).length > 0) return { available: true }
  return missing(
    `the driver does not declare the host of its server, ${target}`,
    `add \`${target}\` to \`network.egress\` of the driver`,
  )
}

export const available = async (
  driver: DriverContract,
  spec: McpSpec,
  here: Surroundings,
  bindings: readonly Binding[],
): Promise<DriverAvailability> => {
  const { server } = spec
  if (server.kind === "remote") return reach(driver, server.url)
  const located = await locate(driver, spec, server, here)
  if (!located.ok) return located.answer
  const { found, edition } = located
  const fault = await faultOf({ driver, spec, server, found, edition, bindings }, here)
  const version = found.module?.version
  if (fault === undefined) return { available: true, ...found, ...(version === undefined ? {} : { version }) }
  const said = fault.details["stderr"]
  return missing(
    `its server is not what the driver says: ${fault.message}${typeof said === "string" ? ` (${said.slice(-300)})` : ""}`,
    fault.hint ?? "start the server by hand and see what it says",
  )
}
