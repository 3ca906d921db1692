/** `caisson drivers [DRIVER]`: what serves the tools, its egress, and whether it can; one in full where it is named. */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { DriverListing } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { withHost } from "../host.ts"
import { tellBrokenManifests } from "../render/diagnostics.ts"
import { driverRows } from "../render/contract.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import { availabilityJson, availabilityText, type ListFlags, named, unloadedJson } from "./tools.ts"

const asJson = ({ contract, availability }: DriverListing): object => ({
  id: contract.id,
  version: contract.version,
  kind: declaredKind(contract),
  description: contract.description,
  tools: contract.implements.map((entry) => entry.tool),
  egress: contract.egress.map((entry) => entry.text),
  region: contract.region,
  policy_tags: contract.policyTags,
  availability: availabilityJson(availability),
})

const showOne = ({ contract, availability }: DriverListing, terminal: Terminal): void => {
  const rows = [
    ...driverRows(contract).map((row) => [...row]),
    ["state", availabilityText(availability, terminal.paintResult)],
  ]
  terminal.result(table([inline(contract.id).toUpperCase(), contract.version], rows, terminal.width))
}

const showAll = (drivers: readonly DriverListing[], terminal: Terminal): void => {
  const paint = terminal.paintResult
  const rows = drivers.map(({ contract, availability }) => [
    paint.bold(inline(`${contract.id}@${contract.major}`)),
    declaredKind(contract),
    contract.egress.length === 0 ? "none" : contract.egress.map((entry) => inline(entry.text)).join(" "),
    availabilityText(availability, paint),
  ])
  terminal.result(table(["DRIVER", "KIND", "EGRESS", "STATE"], rows, terminal.width))
}

export const run = async (name: string | undefined, flags: ListFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const all = await terminal.during(host.drivers())
    tellBrokenManifests(host.diagnostics(), terminal)
    const drivers = name === undefined ? all : named("driver", name, all, terminal)
    if (name !== undefined && drivers.length === 0) return exit.usage
    if (flags.json === true || !terminal.isInteractive) {
      const unloaded = name === undefined ? unloadedJson(host, "driver") : []
      resultJson(terminal, [...drivers.map(asJson), ...unloaded])
    } else if (name === undefined) showAll(drivers, terminal)
    else for (const driver of drivers) showOne(driver, terminal)
    return exit.ok
  })
