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
const badRunner = (contract: DriverContract): Unenforceable | undefined => {
  const { id, runner } = contract
  if (runner === undefined) return undefined
  if (runner.form !== "inline")
    return {
      control: "runner",
      reason: `${id} declares a runner that this host does not have: there is no \`${runner.form === "ref" ? runner.ref : runner.file}\` among its manifests`,
      fix: "put the RUNNER.md there, or write the runner in the driver, as in `runner: { engine: subprocess }`",
    }
  const { npm, pip } = runner.needs
  if (npm.length + pip.length > 0 && kindOf(contract)?.takesPackages !== true)
    return {
      control: "runner-needs",
      reason: `${id} is of a kind that gets no packages from its runner (${[...npm, ...pip].join(", ")})`,
      fix: "name its package under `install`, or make it a driver of kind sdk",
    }
  if (runner.image === undefined) return undefined
  return {
    control: "runner-image",
    reason: `${id} declares a runner image (\`${runner.image}\`), and this host runs its own programs, or those of its own image`,
    fix: "remove `image` from the runner",
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
