/**
 * `caisson tools [TOOL]`: what can be called, and why not where not; one tool in full where it is named.
 *
 * Guarantees: unusable manifests are told on stderr; a name that is not registered is refused with the nearest one.
 */
import type { ToldTool, ToldUnloaded } from "../../host/questions/told.ts"
import type { Availability } from "../../host/types.ts"
import { exit } from "../exit.ts"
import type { HostFlags } from "../host.ts"
import { nearest } from "../../manifest/values/diagnostics.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { toolRows } from "../render/contract.ts"
import { table } from "../render/table.ts"
import { tellBrokenManifests } from "../render/diagnostics.ts"
import { type Colors, resultJson, type Terminal } from "../terminal.ts"
import { completed } from "../typed-again.ts"
import { inline, nameText } from "../visible.ts"

export interface ListFlags extends HostFlags {
  readonly json?: boolean
}

export const availabilityText = (availability: Availability, paint: Colors): string => {
  if (availability.available)
    return paint.green(`available${availability.version === undefined ? "" : ` (${inline(availability.version)})`}`)
  return `${paint.red(availability.code)} ${inline(availability.reason)}; ${inline(availability.fix)}`
}

/** `image.create (3 drivers, 1 unauthed)`, where there is more to say than one driver's name. */
const driversText = ({ drivers, unauthed, unavailable }: ToldTool): string => {
  const fallen = [
    ...(unauthed > 0 ? [`${unauthed} unauthed`] : []),
    ...(unavailable > 0 && drivers.length > 1 ? [`${unavailable} unavailable`] : []),
  ]
  if (drivers.length < 2 && fallen.length === 0) return ""
  return ` (${[`${drivers.length} driver${drivers.length === 1 ? "" : "s"}`, ...fallen].join(", ")})`
}

const asJson = ({
  major: _major,
  tags: _tags,
  timeout_ms: _time,
  examples: _examples,
  file: _file,
  ...tool
}: ToldTool): object => tool

const inFull = (tool: ToldTool): object => ({
  ...asJson(tool),
  timeout_ms: tool.timeout_ms,
  examples: tool.examples,
  file: tool.file,
})

/** Of manifests that did not load, what they claim to be and why they cannot be used. */
export const unloadedJson = (unloaded: readonly ToldUnloaded[], kind: "tool" | "driver"): readonly object[] =>
  unloaded.map(({ file, id, tools, availability }) => ({
    ...(id === undefined ? {} : { id }),
    file,
    ...(kind === "driver" ? { tools } : {}),
    availability,
  }))

/** Those listings that a name means, by id or `id@major`; where there are none, that is told with the nearest id. */
export const named = <T extends { readonly id: string; readonly major: number }>(
  what: "tool" | "driver",
  name: string,
  listed: readonly T[],
  { manifests }: ListFlags,
  terminal: Terminal,
): readonly T[] => {
  const found = listed.filter(({ id, major }) => name === id || name === `${id}@${major}`)
  if (found.length > 0) return found
  const near = nearest(
    name,
    listed.map(({ id }) => id),
  )
  const hint =
    near === undefined ? `${completed(`\`caisson ${what}s\``, manifests)} lists them` : `did you mean ${inline(near)}?`
  terminal.say(`caisson: there is no ${what} ${nameText(name)}; ${hint}`)
  return found
}

const showOne = (tool: ToldTool, { manifests }: ListFlags, terminal: Terminal): void => {
  const rows = [
    ...toolRows(tool, manifests).map((row) => [...row]),
    ["drivers", tool.drivers.map((driver) => inline(driver)).join(", ") || "none"],
    ["state", availabilityText(tool.availability, terminal.paintResult)],
  ]
  terminal.result(table([inline(tool.id).toUpperCase(), tool.version], rows, terminal.width))
}

const showAll = (tools: readonly ToldTool[], terminal: Terminal): void => {
  const paint = terminal.paintResult
  const rows = tools.map((tool) => [
    `${paint.bold(inline(tool.id))}${driversText(tool)}`,
    tool.version,
    tool.mutates.length === 0 ? "reads" : "writes",
    tool.drivers.map((driver) => inline(driver)).join(" "),
    tool.availability.available
      ? `${paint.green("available")}  ${inline(tool.name)}`
      : availabilityText(tool.availability, paint),
  ])
  terminal.result(table(["TOOL", "VERSION", "KIND", "DRIVERS", "STATE"], rows, terminal.width))
}

export const run = async (name: string | undefined, flags: ListFlags, terminal: Terminal): Promise<number> =>
  withCaisson(flags, terminal, async (caisson) => {
    const { listed, unloaded, diagnostics } = await terminal.during(caisson.tools())
    tellBrokenManifests(diagnostics, terminal)
    const tools = name === undefined ? listed : named("tool", name, listed, flags, terminal)
    if (name !== undefined && tools.length === 0) return exit.usage
    if (flags.json === true || !terminal.isInteractive) {
      if (name === undefined) resultJson(terminal, [...tools.map(asJson), ...unloadedJson(unloaded, "tool")])
      else resultJson(terminal, tools.map(inFull))
    } else if (name === undefined) showAll(tools, terminal)
    else for (const tool of tools) showOne(tool, flags, terminal)
    return exit.ok
  })
