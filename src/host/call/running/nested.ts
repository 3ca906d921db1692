/**
 * Further calls that a call's own program asks for over its private descriptor: of the tools that its contract requires
 * (`requires.tools`), and of no others.
 *
 * Guarantees: each is a whole call, with the rights, the workspace, the plan and the regions of the call that asked, a
 * receipt of its own that names that call, and nothing else of it: no yes that came with it, nobody to ask, no context. It
 * is ended with the call that asked, before that has its own receipt. Depth and number are bounded for the whole tree, and
 * what was refused is named in `denied`. What the program is told of a failure names no place of this machine.
 * Does not: let such a call change the workspace (`barredWithin`): the call that asked settles that, all of it or nothing.
 */
import { createHash } from "node:crypto"
import { shown } from "../../../manifest/values/diagnostics.ts"
import { jcs } from "../../../manifest/values/digest.ts"
import type { JsonObject, JsonValue, ToolContract } from "../../../manifest/types.ts"
import type { Denial } from "../../../sandbox/backend.ts"
import { createUlids } from "../../data/ulid.ts"
import type { AskedTool, CallTool, ToolAnswer } from "../../drivers/kind.ts"
import { callErrorOf, type Failure } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { CallRequest, Envelope } from "../../types.ts"
import type { Nesting, Requested, Sealed, Within } from "../steps.ts"

const nextId = createUlids()

export type Made = Omit<Requested, "tell" | "nesting">

/** `make`: performs a call. */
export const nestingOf = (within: Within | undefined, make: Nesting["make"]): Nesting => ({
  depth: within?.depth ?? 0,
  left: within?.left ?? { calls: hostLimits.nestedCalls.value },
  made: [],
  mayHaveChanged: false,
  make,
})

/** What a call within another may not be, whoever makes it. */
export const barredWithin = ({ within }: Pick<Requested, "within">, tool: ToolContract): Failure | undefined => {
  if (within === undefined) return undefined
  const isFor = tool.mutates.some((scope) => scope.class === "workspace") || tool.outputsFiles !== undefined
  if (!isFor) return undefined
  return {
    ok: false,
    code: "policy_violation",
    message: `${tool.id} changes files, and is asked for within another call, whose own effects alone reach the workspace; nothing was run`,
    hint: "let the tool that asks write the files, as its own contract declares",
    details: { reason: "tool_changes_files" },
  }
}

/** From when such a call may have changed something that no layer holds, no call above it is run a second time. */
export const tellChanged = ({ within }: Pick<Requested, "within">, { idempotent, mutates }: ToolContract): void => {
  if (!idempotent && mutates.some((scope) => scope.class !== "workspace")) within?.changed()
}

const REFUSED: ReadonlySet<string> = new Set(["not_found", "unauthorised", "policy_violation", "approval_required"])

const refusal = (code: Failure["code"], message: string): ToolAnswer => {
  const { class: kind, retryable } = callErrorOf({ ok: false, code, message, details: {} })
  return { ok: false, error: { code, class: kind, message, retryable } }
}

/** In the words of inside: what a machine's folders are called is nothing to a program in a sandbox. */
const answerOf = (envelope: Envelope, { workspace }: Sealed, data: string): ToolAnswer => {
  if (envelope.ok) return { ok: true, value: envelope.value }
  const { code, class: kind, message, retryable } = envelope.error
  const told =
    kind === "infrastructure"
      ? "the host could not do it"
      : message.replaceAll(workspace, "/workspace").replaceAll(data, "(the host's data)")
  return { ok: false, error: { code, class: kind, message: told, retryable } }
}

/** The same for the same question, whenever a call with this key asks it. */
const operationOf = (operation: string, ordinal: number, asked: JsonObject): string =>
  createHash("sha256")
    .update(jcs([operation, ordinal, asked]))
    .digest("hex")

/** Of one attempt. */
export class NestedCalls {
  readonly #sealed: Sealed
  readonly #data: string
  readonly #closed = new AbortController()
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #denied = new Map<string, Denial>()
  #asked = 0
  constructor(data: string, sealed: Sealed) {
    this.#data = data
    this.#sealed = sealed
  }

  /** Its own ask, from when it was heard until its answer. */
  readonly call: CallTool = async (asked, signal) => {
    const making = this.#make(asked, AbortSignal.any([signal, this.#closed.signal, this.#sealed.signal]))
    this.#underWay.add(making)
    try {
      return await making
    } finally {
      this.#underWay.delete(making)
    }
  }

  async #make({ tool, input }: AskedTool, signal: AbortSignal): Promise<ToolAnswer> {
    const { nesting, tool: own } = this.#sealed
    if (typeof tool !== "string" || !own.requires.tools.includes(tool)) {
      this.#deny("tool_not_required", typeof tool === "string" ? tool : "?")
      return refusal("policy_violation", `${own.id} does not require this tool; nothing was run`)
    }
    if (nesting === undefined || nesting.depth >= hostLimits.nestedDepth.value) {
      this.#deny("call_depth", tool)
      return refusal("limit_exceeded", `calls within calls go ${hostLimits.nestedDepth.value} deep, and no deeper`)
    }
    if (nesting.left.calls <= 0) {
      this.#deny("calls", tool)
      return refusal("limit_exceeded", `a call and those within it make ${hostLimits.nestedCalls.value} calls, no more`)
    }
    if (signal.aborted) return refusal("cancelled", "the call that asked is over")
    nesting.left.calls -= 1
    this.#asked += 1
    const envelope = await nesting.make(this.#requestFor(tool, input, signal, nesting))
    nesting.made.push({
      tool,
      call: envelope.call,
      ok: envelope.ok,
      verdict: envelope.ok ? "ok" : envelope.error.code,
      receipt: envelope.receipt,
    })
    if (!envelope.ok && REFUSED.has(envelope.error.code))
      this.#deny(
        envelope.error.details["reason"] === "tool_changes_files" ? "tool_changes_files" : "tool_refused",
        tool,
      )
    return answerOf(envelope, this.#sealed, this.#data)
  }

  #requestFor(tool: string, input: JsonValue, signal: AbortSignal, nesting: Nesting): Made {
    const { call, request, caller, empty, operation, regions, plan } = this.#sealed
    const asked: CallRequest = {
      tool,
      input,
      ...(request.workspace === undefined ? {} : { workspace: request.workspace }),
      ...(regions === undefined ? {} : { context: { regionConstraint: [...regions] } }),
      ...(plan ? { plan } : {}),
    }
    const { within: above } = this.#sealed
    return {
      call: nextId(),
      request: asked,
      caller,
      approved: false,
      operation: operationOf(operation, this.#asked, { tool, input }),
      signal,
      ...(empty === undefined ? {} : { empty }),
      within: {
        parent: call,
        depth: nesting.depth + 1,
        left: nesting.left,
        changed: () => {
          nesting.mayHaveChanged = true
          above?.changed()
        },
      },
    }
  }

  #deny(reason: string, tool: string): void {
    const target = shown(tool, 80)
    const key = `${reason} ${target}`
    const known = this.#denied.get(key)
    if (known === undefined && this.#denied.size >= hostLimits.nestedDenials.value) return
    this.#denied.set(key, { layer: "limit", reason, target, count: (known?.count ?? 0) + 1 })
  }

  denials(): readonly Denial[] {
    return [...this.#denied.values()]
  }

  /** What is under way is cancelled, and waited for: its receipt is written before that of the call that asked. */
  async end(): Promise<void> {
    this.#closed.abort()
    await Promise.allSettled(this.#underWay)
  }
}
