/**
 * Drivers with functions of their own, of whatever kind: `execute` runs the call, other functions serve its kind.
 *
 * Guarantees: no function of a driver is ever called in this process. `execute` runs once for each call, in a fresh
 * process inside the call's own sandbox, with the hosts that the driver declares, and is judged like any program; where
 * the driver has none, its kind runs the call as for every driver of that kind.
 */
import type { JsonValue } from "../../../manifest/types.ts"
import { wholeInput } from "../../invoke/whole-input.ts"
import type { Answer, DriverKindModule, KindCall, KindCommand, Needs } from "../kind.ts"
import type { FoundModule, OwnFunctions } from "../runner/found-module.ts"
import { Marks } from "../runner/marks.ts"
import type { RunnerRequest } from "../runner/request.ts"
import { moduleConversation } from "../sdk/conversation.ts"
import { moduleNeeds, moduleRemedies } from "../sdk/kind.ts"
import { withAdapters } from "./adapters.ts"
import { findEntry } from "./entry.ts"

type OwnModule = FoundModule & { readonly own: OwnFunctions }

const ownOf = ({ module }: KindCall): OwnModule | undefined =>
  module?.own === undefined ? undefined : { ...module, own: module.own }

const executes = (call: KindCall): boolean => ownOf(call)?.own.names.includes("execute") === true

const gone = ({ driver }: KindCall): Answer<never> => ({
  ok: false,
  code: "tool_unavailable",
  message: `the module behind ${driver.key} is not there`,
  details: { driver: driver.key },
})

/** The key of `execute` that is this tool's, in whichever spelling it was written (C-35). */
const keyFor = ({ binding: { implementation } }: KindCall, { own }: OwnModule): string => {
  const { tool, toolRef } = implementation
  return [tool, toolRef, tool.replaceAll(".", "-")].find((key) => own.execute.includes(key)) ?? tool
}

/** `ExecuteArgs` (AIP-30); the signal, the way to other tools and the values of secrets are put in inside. */
const argumentsOf = (call: KindCall, marks: Marks): JsonValue => ({
  input: wholeInput(call),
  context: call.context,
  driverCtx: {
    driver: { id: call.driver.contract.id, version: call.driver.contract.version },
    region: [...call.driver.contract.region],
    secrets: marks.each(),
    operationKey: call.operation,
    call: null,
    signal: null,
  },
  signal: null,
})
const SIGNALS = [
  [0, "signal"],
  [0, "driverCtx", "signal"],
]
const CALLS = [[0, "driverCtx", "call"]]

const executeCommand = (call: KindCall): Answer<KindCommand> => {
  const found = ownOf(call)
  const { key, contract } = call.driver
  if (found === undefined || contract.code === undefined) return gone(call)
  const { module } = found
  const ref = [contract.code.export, "execute", keyFor(call, found)]
  const marks = new Marks(contract)
  const request: RunnerRequest = {
    do: "call",
    module,
    ref,
    args: [argumentsOf(call, marks)],
    marks: marks.all(),
    signals: SIGNALS,
    calls: CALLS,
  }
  const sdk = { functionRef: ref, arguments: { style: "input" }, extract: [] } as const
  const asked = { key, tool: call.tool, auth: contract.auth, sdk }
  return { ok: true, value: moduleConversation(found, request, asked) }
}

/** What was found of a driver of the kind, with its module. */
const available =
  (base: DriverKindModule | undefined): DriverKindModule["available"] =>
  async (driver, here, bindings) => {
    const entry = await findEntry(driver, here)
    if (!entry.ok) return entry.answer
    const { module } = entry
    if (module.own?.names.includes("execute") === true || base === undefined) return { available: true, module }
    const answer = await base.available(driver, here, bindings)
    return answer.available ? { ...answer, module } : answer
  }

const noted = (call: KindCall, answer: Answer<Needs>): Answer<Needs> => {
  const notes = ownOf(call)?.own.notes ?? []
  return answer.ok ? { ok: true, value: { ...answer.value, notes: [...answer.value.notes, ...notes] } } : answer
}

/** `base`: the kind that such a driver is of, where it is run by it; absent: `execute` is all it has. */
export const codeKind = (base: DriverKindModule | undefined): DriverKindModule => ({
  kind: base?.kind ?? "sdk",
  bringsTransforms: false,
  remedies: (driver, tool) => base?.remedies?.(driver, tool) ?? moduleRemedies,
  bind: (driver, index, tool, implementation) =>
    base?.bind(driver, index, tool, implementation) ?? {
      binding: { tool, implementation, needs: [] },
      diagnostics: [],
    },
  // `execute` runs in a sandbox; without one the base says so at the call.
  unenforceable: (driver) => base?.unenforceable(driver),
  available: available(base),
  packages: (driver, wanted) => base?.packages?.(driver, wanted) ?? [],
  needs: (call, findProgram) =>
    noted(call, executes(call) || base === undefined ? moduleNeeds(call) : base.needs(call, findProgram)),
  command: (call) => {
    if (executes(call) || base === undefined) return executeCommand(call)
    const made = base.command(call)
    const own = ownOf(call)?.own
    if (!made.ok || made.value.run !== "program" || own === undefined) return made
    return { ok: true, value: withAdapters(call, own, made.value) }
  },
  outline: (call) =>
    executes(call) || base === undefined
      ? [call.driver.contract.code?.module ?? call.driver.key, `execute[${call.tool.id}]`]
      : base.outline(call),
  evidence: (call, command) => {
    const { code } = call.driver.contract
    const functions = ownOf(call)?.own.names ?? []
    return {
      ...(executes(call) || base === undefined
        ? { function_ref: `execute[${call.tool.id}]` }
        : base.evidence(call, command)),
      module: { digest: code?.digest ?? "", functions: [...functions] },
    }
  },
})
