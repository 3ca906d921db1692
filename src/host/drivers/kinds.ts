/** The kinds of drivers that this host runs. */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { DriverBody, DriverContract } from "../../manifest/types.ts"
import { amplifierKind, amplifierOf } from "./amplifier/kind.ts"
import { builtinKind } from "./builtin/kind.ts"
import { cliKind } from "./cli/kind.ts"
import { codeKind } from "./code/kind.ts"
import { httpKind } from "./http/kind.ts"
import { sdkKind } from "./sdk/kind.ts"
import type { DriverAvailability, DriverKindModule } from "./kind.ts"
import { mcpKind } from "./mcp/kind.ts"
import { ownKindOf } from "./run/kind.ts"

const kinds: Readonly<Record<DriverBody["kind"], DriverKindModule | undefined>> = {
  cli: cliKind,
  http: httpKind,
  sdk: sdkKind,
  mcp: mcpKind,
  builtin: builtinKind,
  /** `execute` is all that such a driver has */
  code: undefined,
}

const withCode = new Map<DriverBody["kind"], DriverKindModule>()

/** Of a driver with functions of its own, its kind with those. */
export const kindOf = (contract: Pick<DriverContract, "body" | "code">): DriverKindModule | undefined => {
  const own = ownKindOf(contract)
  if (own !== undefined) return own
  const { body, code } = contract
  const base = amplifierOf({ body }) === undefined ? kinds[body.kind] : amplifierKind
  if (code === undefined || (base === undefined && body.kind !== "code")) return base
  const known = withCode.get(body.kind) ?? codeKind(base)
  withCode.set(body.kind, known)
  return known
}

const served = Object.values(kinds).flatMap((module) => (module === undefined ? [] : [module.kind]))

export const unserved = (driver: DriverContract): Extract<DriverAvailability, { available: false }> => ({
  available: false,
  code: "tool_unavailable",
  reason: `this host does not run ${declaredKind(driver)} drivers yet`,
  fix: `register a driver of kind ${served.join(" or ")} for the tool`,
})
