/**
 * How a sandbox's ending reads as an error of the call.
 *
 * Guarantees: every ending but a plain exit has one code; a limit is named; a deadline on a tool that can have effects
 * outside the workspace says so (`details.commit: "unknown"`), and is then not retryable unless the contract says that a
 * second run does no harm: it is idempotent, or changes nothing. Does not: read output; `output.ts` judges exits.
 */
import type { ToolContract } from "../../manifest/types.ts"
import type { Ending } from "../../sandbox/backend.ts"
import type { Failure } from "../failure.ts"

interface EndingContext {
  readonly tool: Pick<ToolContract, "mutates" | "idempotent">
  /** the sealed call could reach hosts */
  readonly network: boolean
  readonly timeoutMs: number
}

type Limit = Extract<Ending, { by: "limit" }>["limit"]
const limitTexts: Readonly<Record<Exclude<Limit, "wall">, string>> = {
  memory: "used more memory than it may",
  pids: "had more processes than it may",
  cpu: "used more processor time than it may",
  disk: "wrote more bytes than it may",
  output: "printed more than it may",
}

/** Effects that throwing the layer away does not undo. */
const reachesOutside = ({ tool, network }: EndingContext): boolean =>
  network || tool.mutates.some((scope) => scope.class !== "workspace")

/** Run again, such a call could do twice what it may have done already (the same rule as for the host's own retries, C-23). */
const isSafeToRepeat = ({ tool }: EndingContext): boolean => tool.idempotent || tool.mutates.length === 0

export const endingFailure = (ending: Exclude<Ending, { by: "exit" }>, context: EndingContext): Failure => {
  const failure = failureOf(ending, context)
  return failure.details["commit"] === undefined || isSafeToRepeat(context) ? failure : { ...failure, retryable: false }
}

const failureOf = (ending: Exclude<Ending, { by: "exit" }>, context: EndingContext): Failure => {
  const commit = reachesOutside(context) ? { commit: "unknown" } : {}
  switch (ending.by) {
    case "signal":
      return {
        ok: false,
        code: "upstream_error",
        message: `the tool was ended by ${ending.signal}`,
        details: { signal: ending.signal, ...commit },
      }
    case "limit":
      if (ending.limit === "wall") {
        return {
          ok: false,
          code: "timeout",
          message: `the tool took longer than ${context.timeoutMs} ms; nothing was committed`,
          details: { limit: "wall", timeout_ms: context.timeoutMs, ...commit },
        }
      }
      return {
        ok: false,
        code: "limit_exceeded",
        message: `the tool ${limitTexts[ending.limit]}; nothing was committed`,
        details: { limit: ending.limit, ...commit },
      }
    case "cancelled":
      return {
        ok: false,
        code: "cancelled",
        message: "the call was cancelled; nothing was committed",
        details: { ...commit },
      }
    case "exec-denied":
      return {
        ok: false,
        code: "undeclared_exec",
        message: "the tool ran a program that its driver does not declare; nothing was committed",
        details: { ...commit },
      }
    case "infrastructure":
      return { ok: false, code: "internal", message: `the sandbox broke: ${ending.message}`, details: { ...commit } }
  }
}
