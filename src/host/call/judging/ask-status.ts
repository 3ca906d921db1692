/**
 * Step 8b, where nobody knows whether a call did outside the workspace what it was asked for: its contract's status tool is
 * asked before anything else is done (`metadata.operation.status_tool`).
 *
 * Guarantees: it is a whole call of its own, with the rights of the call that asks and nothing of its approval, named in that
 * call's receipt; a tool that declares any effect is not called for it. `done` is told as done and never run again;
 * `not_done` is the one answer after which a call is tried once more, where its contract's retries leave an attempt; any
 * other, and none, leaves it unknown. A call that was cancelled asks nothing.
 */
import { createHash } from "node:crypto"
import type { JsonObject, JsonValue, ToolContract } from "../../../manifest/types.ts"
import { createUlids } from "../../data/ulid.ts"
import type { Failure, Success } from "../../failure.ts"
import { operationKey } from "../../invoke/operation-key.ts"
import { hostLimits } from "../../limits.ts"
import { findTool } from "../admission/find-tool.ts"
import type { HostCore } from "../core.ts"
import type { Before } from "../run.ts"
import type { Authorized, Progress } from "../steps.ts"

type End = Success | Failure
type State = "done" | "not_done" | "unknown"

const nextId = createUlids()

const declared = ({ inputs }: ToolContract): readonly string[] => {
  const properties = inputs["properties"]
  return typeof properties === "object" && properties !== null ? Object.keys(properties) : []
}

/** What the status tool takes of the same names, and the key that the service knows the call by. */
const inputFor = (status: ToolContract, { input, operation }: Authorized, driver: string): JsonObject => {
  const own: Record<string, JsonValue> = {}
  for (const name of declared(status)) {
    const value = input[name]
    if (value !== undefined) own[name] = value
  }
  if (declared(status).includes("operation_key")) own["operation_key"] = operationKey(operation, driver)
  return own
}

const stateIn = (value: JsonValue): State => {
  const isMap = typeof value === "object" && value !== null && !Array.isArray(value)
  const said = isMap ? (value as JsonObject)["state"] : value
  const word = typeof said === "string" ? said.trim() : ""
  return word === "done" || word === "not_done" ? word : "unknown"
}

const ask = async (core: HostCore, call: Authorized, named: string, driver: string): Promise<State> => {
  const { nesting, request, caller, empty, operation, regions, signal, within } = call
  const found = findTool(core, caller, named)
  if (nesting === undefined || !found.ok || found.value.tool.mutates.length > 0) return "unknown"
  if (nesting.depth >= hostLimits.nestedDepth.value || nesting.left.calls <= 0) return "unknown"
  nesting.left.calls -= 1
  const envelope = await nesting.make({
    call: nextId(),
    request: {
      tool: named,
      input: inputFor(found.value.tool, call, driver),
      ...(request.workspace === undefined ? {} : { workspace: request.workspace }),
      ...(regions === undefined ? {} : { context: { regionConstraint: [...regions] } }),
    },
    caller,
    approved: false,
    operation: createHash("sha256")
      .update(JSON.stringify([operation, "status"]))
      .digest("hex"),
    signal,
    ...(empty === undefined ? {} : { empty }),
    within: { parent: call.call, depth: nesting.depth + 1, left: nesting.left, changed: () => within?.changed() },
  })
  nesting.made.push({
    tool: named,
    call: envelope.call,
    ok: envelope.ok,
    verdict: envelope.ok ? "ok" : envelope.error.code,
    receipt: envelope.receipt,
  })
  return envelope.ok ? stateIn(envelope.value) : "unknown"
}

interface Known {
  readonly end: End
  /** it was not done, and is to be tried once more */
  readonly again?: Before
}

/** `attempts`: how often the call was tried. */
export const askStatus = async (
  core: HostCore,
  call: Authorized,
  progress: Progress,
  end: End,
  attempts: number,
): Promise<Known> => {
  const named = call.tool.operation?.statusTool
  if (named === undefined || end.ok || end.details["commit"] !== "unknown" || call.signal.aborted || call.plan)
    return { end }
  // What has not run has done nothing.
  if (!("attempt" in progress)) return { end }
  const { attempt, homes, reached, driver } = progress
  const state = await ask(core, call, named, driver.key)
  if (state === "unknown") return { end: { ...end, details: { ...end.details, status: state } } }
  if (state === "done")
    return {
      end: {
        ...end,
        retryable: false,
        message: `${end.message}; ${named} says that it was done all the same`,
        details: { ...end.details, commit: "committed", status: state },
      },
    }
  const known: Failure = {
    ...end,
    retryable: true,
    message: `${end.message}; ${named} says that it was not done`,
    details: { ...end.details, commit: "none", status: state },
  }
  const most = call.tool.retry?.maxAttempts ?? 1
  const mayAgain = attempts < most && call.nesting?.mayHaveChanged !== true
  return mayAgain ? { end: known, again: { elapsedMs: 0, denied: attempt.denied, homes, reached } } : { end: known }
}
