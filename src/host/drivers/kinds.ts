/** The kinds of drivers that this host runs. */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { DriverBody, DriverContract } from "../../manifest/types.ts"
import { cliKind } from "./cli/kind.ts"
import { httpKind } from "./http/kind.ts"
import { sdkKind } from "./sdk/kind.ts"
import type { DriverAvailability, DriverKindModule } from "./kind.ts"
import { mcpKind } from "./mcp/kind.ts"

const kinds: Readonly<Record<DriverBody["kind"], DriverKindModule | undefined>> = {
  cli: cliKind,
  http: httpKind,
  sdk: sdkKind,
  mcp: mcpKind,
  builtin: undefined,
  code: undefined,
}

/** A driver that needs functions of its own called is served where they can be. */
export const kindOf = ({ body, code }: Pick<DriverContract, "body" | "code">): DriverKindModule | undefined =>
  code === undefined ? kinds[body.kind] : kinds.code

const served = Object.values(kinds).flatMap((module) => (module === undefined ? [] : [module.kind]))

export const unserved = (driver: DriverContract): Extract<DriverAvailability, { available: false }> => ({
  available: false,
  code: "tool_unavailable",
  reason:
    driver.code === undefined
      ? `this host does not run ${declaredKind(driver)} drivers yet`
      : "this host does not call functions of a driver's own yet",
  fix: `register a driver of kind ${served.join(" or ")} for the tool`,
})
