/** `caisson drivers [DRIVER]`: what serves the tools, its egress, and whether it can; one in full where it is named. */
import type { ToldDriver } from "../../host/questions/told.ts"
import { exit } from "../exit.ts"
import { withCaisson } from "../reach/with-caisson.ts"
import { tellBrokenManifests } from "../render/diagnostics.ts"
import { driverRows } from "../render/contract.ts"
import { table } from "../render/table.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"
import { availabilityText, type ListFlags, named, unloadedJson } from "./tools.ts"

const asJson = (driver: ToldDriver): object => ({
  id: driver.id,
  version: driver.version,
  kind: driver.kind,
  description: driver.description,
  tools: driver.implements,
  egress: driver.egress,
  region: driver.region,
  policy_tags: driver.policy_tags,
  availability: driver.availability,
})

const showOne = (driver: ToldDriver, terminal: Terminal): void => {
  const rows = [
    ...driverRows(driver).map((row) => [...row]),
    ["state", availabilityText(driver.availability, terminal.paintResult)],
  ]
  terminal.result(table([inline(driver.id).toUpperCase(), driver.version], rows, terminal.width))
}

const showAll = (drivers: readonly ToldDriver[], terminal: Terminal): void => {
  const paint = terminal.paintResult
  const rows = drivers.map((driver) => [
    paint.bold(inline(`${driver.id}@${driver.major}`)),
    driver.kind,
    driver.egress.length === 0 ? "none" : driver.egress.map((entry) => inline(entry)).join(" "),
    availabilityText(driver.availability, paint),
  ])
  terminal.result(table(["DRIVER", "KIND", "EGRESS", "STATE"], rows, terminal.width))
}

export const run = async (name: string | undefined, flags: ListFlags, terminal: Terminal): Promise<number> =>
  withCaisson(flags, terminal, async (caisson) => {
    const { listed, unloaded, diagnostics } = await terminal.during(caisson.drivers())
    tellBrokenManifests(diagnostics, terminal)
    const drivers = name === undefined ? listed : named("driver", name, listed, flags, terminal)
    if (name !== undefined && drivers.length === 0) return exit.usage
    if (flags.json === true || !terminal.isInteractive) {
      const broken = name === undefined ? unloadedJson(unloaded, "driver") : []
      resultJson(terminal, [...drivers.map(asJson), ...broken])
    } else if (name === undefined) showAll(drivers, terminal)
    else for (const driver of drivers) showOne(driver, terminal)
    return exit.ok
  })
