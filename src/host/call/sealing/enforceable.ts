/**
 * What a driver may declare and this host has no control for, whatever the call.
 *
 * Guarantees: a driver that passes can be sealed as far as its own words go; one that does not is dropped from the
 * route and shown as unavailable, with what to change. Pure. Does not: ask the machine; the sandbox does.
 */
import type { DriverContract } from "../../../manifest/types.ts"
import type { Unenforceable } from "../../drivers/kind.ts"
import { kindOf } from "../../drivers/kinds.ts"

/** `in-process` is honoured as a subprocess, as the spec has it for code that nobody vouches for. */
const badRunner = ({ id, runner }: DriverContract): Unenforceable | undefined => {
  if (runner === undefined) return undefined
  if (runner.form !== "inline")
    return {
      control: "runner",
      reason: `${id} declares a runner that this host does not have`,
      fix: "use the engine subprocess or sandbox, as in `runner: { engine: subprocess }`",
    }
  if (runner.image === undefined) return undefined
  return {
    control: "runner-image",
    reason: `${id} declares a runner image, and the namespace backend runs the host's own programs`,
    fix: "remove `runner.image` from the driver",
  }
}

export const unenforceable = (contract: DriverContract): Unenforceable | undefined => {
  if (contract.ingress.length > 0)
    return {
      control: "ingress",
      reason: `${contract.id} declares ingress (${contract.ingress.join(", ")}), which this host cannot offer`,
      fix: "remove `network.ingress` from the driver",
    }
  return badRunner(contract) ?? kindOf(contract)?.unenforceable(contract)
}
