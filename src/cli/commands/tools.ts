/** `caisson tools`: what can be called, and why not where not. Unusable manifests are told on stderr. */
import type { Availability, Host, ToolListing, UnloadedListing } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { type HostFlags, withHost } from "../host.ts"
import { table } from "../render/table.ts"
import { tellBrokenManifests } from "../render/diagnostics.ts"
import { type Colors, resultJson, type Terminal, visible } from "../terminal.ts"

export interface ListFlags extends HostFlags {
  readonly json?: boolean
}

export const availabilityText = (availability: Availability, paint: Colors): string => {
  if (availability.available)
    return paint.green(`available${availability.version === undefined ? "" : ` (${visible(availability.version)})`}`)
  return `${paint.red(availability.code)} ${visible(availability.reason)}; ${visible(availability.fix)}`
}

/** The listing's own words, without what the host keeps for itself. */
export const availabilityJson = (availability: Availability): object => {
  if (!availability.available)
    return { available: false, code: availability.code, reason: availability.reason, fix: availability.fix }
  return { available: true, ...(availability.version === undefined ? {} : { version: availability.version }) }
}

const asJson = ({ contract, drivers, availability }: ToolListing): object => ({
  id: contract.id,
  version: contract.version,
  name: contract.name,
  description: contract.description,
  inputs: contract.inputs,
  outputs: contract.outputs,
  mutates: contract.mutates.map((scope) => scope.text),
  approval: contract.approval.class === "policy" ? `policy:${contract.approval.ref}` : contract.approval.class,
  risk_level: contract.riskLevel,
  drivers,
  availability: availabilityJson(availability),
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

export const run = async (flags: ListFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const tools = await terminal.during(host.tools())
    tellBrokenManifests(host.diagnostics(), terminal)
    if (flags.json === true || !terminal.isInteractive) {
      resultJson(terminal, [...tools.map(asJson), ...unloadedJson(host, "tool")])
      return exit.ok
    }
    const paint = terminal.paintResult
    const rows = tools.map((tool) => [
      paint.bold(visible(tool.contract.id)),
      tool.contract.version,
      tool.contract.mutates.length === 0 ? "reads" : "writes",
      tool.drivers.map(visible).join(" "),
      tool.availability.available
        ? `${paint.green("available")}  ${visible(tool.contract.name)}`
        : availabilityText(tool.availability, paint),
    ])
    terminal.result(table(["TOOL", "VERSION", "KIND", "DRIVERS", "STATE"], rows, terminal.width))
    return exit.ok
  })
