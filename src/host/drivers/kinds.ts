/** The kinds of drivers that this host runs. */
import type { DriverContract, DriverKind } from "../../manifest/types.ts"
import { cliKind } from "./cli/kind.ts"
import type { DriverAvailability, DriverKindModule } from "./kind.ts"

const kinds: Readonly<Record<DriverKind, DriverKindModule | undefined>> = {
  cli: cliKind,
  http: undefined,
  mcp: undefined,
  sdk: undefined,
  builtin: undefined,
}

export const kindOf = ({ body }: Pick<DriverContract, "body">): DriverKindModule | undefined => kinds[body.kind]

const served = Object.values(kinds).flatMap((module) => (module === undefined ? [] : [module.kind]))

export const unserved = ({ body }: DriverContract): Extract<DriverAvailability, { available: false }> => ({
  available: false,
  code: "tool_unavailable",
  reason: `this host does not run ${body.kind} drivers yet`,
  fix: `register a driver of kind ${served.join(" or ")} for the tool`,
})
