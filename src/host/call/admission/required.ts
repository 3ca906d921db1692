/**
 * What each driver of a tool requires: the hosts that it would reach and the secrets that it would be given, held against
 * the operator's policies before any of it is had.
 *
 * Guarantees: hosts are those that a call's way out would be made of, secrets those that would be bound; what the contract
 * claims narrows them and never hides them. No secret is looked at, and nobody is asked.
 */
import { parseEgressEntry } from "../../../manifest/values/egress-entry.ts"
import { type Capability, reaching, revealing } from "../../access/capabilities.ts"
import { type Barred, driverRefusal } from "../../access/decide.ts"
import { accessPolicyOf } from "../../access/policy.ts"
import { reachFor } from "../../drivers/kind-reach.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import { secretNeeds } from "../../secrets/needs.ts"
import type { HostCore } from "../core.ts"
import { egressOf } from "../sealing/network.ts"
import { inventoryFor } from "../sign-in.ts"
import type { Admitted } from "../steps.ts"
import { actionOf } from "./find-tool.ts"

type Asked = Pick<Admitted, "tool" | "caller">

const neededBy = (core: HostCore, { tool }: Asked, driver: RegisteredDriver): readonly Capability[] => {
  const declared = driver.bindings
    .filter((binding) => binding.tool.id === tool.id && binding.tool.major === tool.major)
    .flatMap(({ implementation }) => reachFor(driver.contract, implementation).egress)
    .flatMap((text) => {
      const parsed = parseEgressEntry(text)
      return parsed.ok ? [parsed.entry] : []
    })
  return [
    ...reaching(egressOf(core, tool, declared).map(({ text }) => text)),
    ...revealing(secretNeeds(driver.contract, tool, inventoryFor(core, driver)).map(({ slug }) => slug)),
  ]
}

/** Those that may not serve it, with the rule that says so. */
export const barredDrivers = (
  core: HostCore,
  call: Asked,
  drivers: readonly RegisteredDriver[],
): ReadonlyMap<string, Barred> => {
  const policy = accessPolicyOf(core.registry, core.config)
  if (policy.grants.length === 0 && policy.rules.length === 0) return new Map()
  const deed = { tool: call.tool, ...actionOf(core.registry, call.tool) }
  const now = Date.now()
  return new Map(
    drivers.flatMap((driver) => {
      const refused = driverRefusal(policy, call.caller, deed, neededBy(core, call, driver), now)
      return refused === undefined ? [] : [[driver.key, refused] as const]
    }),
  )
}
