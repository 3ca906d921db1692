/** `caisson drivers`: what serves the tools, its egress, and whether its program is there in a version that fits. */
import type { DriverListing } from "../../host/types.ts"
import { exit } from "../exit.ts"
import { withHost } from "../host.ts"
import { tellBrokenManifests } from "../render/diagnostics.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal, visible } from "../terminal.ts"
import { availabilityJson, availabilityText, type ListFlags, unloadedJson } from "./tools.ts"

const asJson = ({ contract, availability }: DriverListing): object => ({
  id: contract.id,
  version: contract.version,
  kind: contract.driverKind,
  description: contract.description,
  tools: contract.implements.map((entry) => entry.tool),
  egress: contract.egress.map((entry) => entry.text),
  region: contract.region,
  policy_tags: contract.policyTags,
  availability: availabilityJson(availability),
})

export const run = async (flags: ListFlags, terminal: Terminal): Promise<number> =>
  withHost(flags, terminal, async (host) => {
    const drivers = await terminal.during(host.drivers())
    tellBrokenManifests(host.diagnostics(), terminal)
    if (flags.json === true || !terminal.isInteractive) {
      resultJson(terminal, [...drivers.map(asJson), ...unloadedJson(host, "driver")])
      return exit.ok
    }
    const paint = terminal.paintResult
    const rows = drivers.map(({ contract, availability }) => [
      paint.bold(visible(`${contract.id}@${contract.major}`)),
      contract.driverKind,
      contract.egress.length === 0 ? "none" : contract.egress.map((entry) => visible(entry.text)).join(" "),
      availabilityText(availability, paint),
    ])
    terminal.result(table(["DRIVER", "KIND", "EGRESS", "STATE"], rows, terminal.width))
    return exit.ok
  })
