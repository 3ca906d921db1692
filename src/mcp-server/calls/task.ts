/**
 * A call as a task of the Tasks extension (SEP-2663): how it is made known, and how it stands.
 *
 * Guarantees: pure. A tool that failed is a task that completed, with an error for its result; only what this host could not
 * do, so that no tool ever answered, is a task that failed. What is told of a task is told by its own words alone: no state of a client's round is in it.
 */
import type { Envelope } from "../../host/types.ts"
import { resultOf } from "../catalogue/tools.ts"
import { mcpLimits } from "../limits.ts"
import type { Run } from "./run.ts"

interface Task {
  readonly taskId: string
  readonly status: "working" | "input_required" | "completed" | "failed" | "cancelled"
  readonly createdAt: string
  readonly lastUpdatedAt: string
  readonly ttlMs: number
  readonly pollIntervalMs: number
}
export interface CreatedTask extends Task {
  readonly resultType: "task"
}
export const isCreatedTask = (answer: object): answer is CreatedTask =>
  (answer as { readonly resultType?: unknown }).resultType === "task"

const baseOf = (run: Run, status: Task["status"]): Task => ({
  taskId: run.id,
  status,
  createdAt: run.began.toISOString(),
  lastUpdatedAt: run.changed.toISOString(),
  ttlMs: run.entry.contract.timeoutMs + mcpLimits.taskKeepMs.value,
  pollIntervalMs: mcpLimits.taskPollMs.value,
})

export const createdTask = (run: Run): CreatedTask => {
  run.telling.turnTo(undefined)
  return { resultType: "task", ...baseOf(run, "working") }
}

const INTERNAL = -32603
/** No tool answered: there was no way to one, or the host is at fault. */
const isNoAnswer = (envelope: Envelope): boolean =>
  !envelope.ok && (envelope.error.class === "routing" || envelope.error.class === "infrastructure")

export const taskOf = (run: Run): Readonly<Record<string, unknown>> => {
  const { envelope, questions } = run
  if (!run.hasEnded) {
    const asks = Object.keys(questions).length > 0
    return { ...baseOf(run, asks ? "input_required" : "working"), ...(asks ? { inputRequests: questions } : {}) }
  }
  if (envelope === undefined)
    return { ...baseOf(run, "failed"), error: { code: INTERNAL, message: "the daemon itself failed over this call" } }
  if (!envelope.ok && envelope.error.code === "cancelled") return { ...baseOf(run, "cancelled") }
  if (!envelope.ok && isNoAnswer(envelope)) {
    const { call, receipt, error } = envelope
    const { code, message } = error
    return {
      ...baseOf(run, "failed"),
      error: { code: INTERNAL, message: `${code}: ${message}`, data: { call, receipt, error } },
    }
  }
  return { ...baseOf(run, "completed"), result: resultOf(envelope, run.entry.shown) }
}
