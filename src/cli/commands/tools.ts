/**
 * `caisson tools [TOOL]`: what can be called, and why not where not; one tool in full where it is named.
 *
 * Guarantees: unusable manifests are told on stderr; a name that is not registered is refused with the nearest one.
 */
import type { Availability, Host, ToolListing, UnloadedListing } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { nearest } from "../../manifest/values/diagnostics.ts"
import { approvalText, toolRows } from "../render/contract.ts"
import { table } from "../render/table.ts"
import { tellBrokenManifests } from "../render/diagnostics.ts"
import { type Colors, resultJson, type Terminal } from "../terminal.ts"
import { inline, nameText } from "../visible.ts"

export interface ListFlags extends HostFlags {
  readonly json?: boolean
}

export const availabilityText = (availability: Availability, paint: Colors): string => {
  if (availability.available)
    return paint.green(`available${availability.version === undefined ? "" : ` (${inline(availability.version)})`}`)
  return `${paint.red(availability.code)} ${inline(availability.reason)}; ${inline(availability.fix)}`
}

/** The listing's own words, without what the host keeps for itself. */
export const availabilityJson = (availability: Availability): object => {
  if (!availability.available)
    return { available: false, code: availability.code, reason: availability.reason, fix: availability.fix }
  return { available: true, ...(availability.version === undefined ? {} : { version: availability.version }) }
}

/** `image.create (3 drivers, 1 unauthed)`, where there is more to say than one driver's name. */
const driversText = ({ drivers, unauthed, unavailable }: ToolListing): string => {
  const fallen = [
    ...(unauthed > 0 ? [`${unauthed} unauthed`] : []),
    ...(unavailable > 0 && drivers.length > 1 ? [`${unavailable} unavailable`] : []),
  ]
  if (drivers.length < 2 && fallen.length === 0) return ""
  return ` (${[`${drivers.length} driver${drivers.length === 1 ? "" : "s"}`, ...fallen].join(", ")})`
}

const asJson = ({ contract, drivers, unauthed, unavailable, availability }: ToolListing): object => ({
  id: contract.id,
  version: contract.version,
  name: contract.name,
  description: contract.description,
  inputs: contract.inputs,
  outputs: contract.outputs,
  mutates: contract.mutates.map((scope) => scope.text),
  approval: approvalText(contract),
  risk_level: contract.riskLevel,
  drivers,
  unauthed,
  unavailable,
  availability: availabilityJson(availability),
})

const inFull = (listing: ToolListing): object => ({
  ...asJson(listing),
  timeout_ms: listing.contract.timeoutMs,
  examples: listing.contract.examples,
  file: listing.contract.source.file,
})

/** Of manifests that did not load, what they claim to be and why they cannot be used. */
export const unloadedJson = (host: Host, kind: UnloadedListing["kind"]): readonly object[] =>
  host
    .unloaded()
    .filter((one) => one.kind === kind)
    .map(({ file, claims: { id, tools }, availability }) => ({
      ...(id === undefined ? {} : { id }),
      file,
      ...(kind === "driver" ? { tools } : {}),
      availability: availabilityJson(availability),
    }))

/** Those listings that a name means, by id or `id@major`; where there are none, that is told with the nearest id. */
export const named = <T extends { readonly contract: { readonly id: string; readonly major: number } }>(
  what: "tool" | "driver",
  name: string,
  listed: readonly T[],
  terminal: Terminal,
): readonly T[] => {
  const found = listed.filter(({ contract }) => name === contract.id || name === `${contract.id}@${contract.major}`)
  if (found.length > 0) return found
  const near = nearest(
    name,
    listed.map(({ contract }) => contract.id),
  )
  const hint = near === undefined ? `\`caisson ${what}s\` lists them` : `did you mean ${inline(near)}?`
  terminal.say(`caisson: there is no ${what} ${nameText(name)}; ${hint}`)
  return found
}

const showOne = ({ contract, drivers, availability }: ToolListing, terminal: Terminal): void => {
  const paint = terminal.paintResult
  const rows = [
    ...toolRows(contract).map((row) => [...row]),
    ["drivers", drivers.map((driver) => inline(driver)).join(", ") || "none"],
    ["state", availabilityText(availability, paint)],
  ]
  terminal.result(table([inline(contract.id).toUpperCase(), contract.version], rows, terminal.width))
}

const showAll = (tools: readonly ToolListing[], terminal: Terminal): void => {
  const paint = terminal.paintResult
  const rows = tools.map((tool) => [
    `${paint.bold(inline(tool.contract.id))}${driversText(tool)}`,
    tool.contract.version,
    tool.contract.mutates.length === 0 ? "reads" : "writes",
    tool.drivers.map((driver) => inline(driver)).join(" "),
    tool.availability.available
      ? `${paint.green("available")}  ${inline(tool.contract.name)}`
      : availabilityText(tool.availability, paint),
  ])
  terminal.result(table(["TOOL", "VERSION", "KIND", "DRIVERS", "STATE"], rows, terminal.width))
}

export const run = async (name: string | undefined, flags: ListFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const all = await terminal.during(host.tools())
    tellBrokenManifests(host.diagnostics(), terminal)
    const tools = name === undefined ? all : named("tool", name, all, terminal)
    if (name !== undefined && tools.length === 0) return exit.usage
    if (flags.json === true || !terminal.isInteractive) {
      if (name === undefined) resultJson(terminal, [...tools.map(asJson), ...unloadedJson(host, "tool")])
      else resultJson(terminal, tools.map(inFull))
    } else if (name === undefined) showAll(tools, terminal)
    else for (const tool of tools) showOne(tool, terminal)
    return exit.ok
  })
