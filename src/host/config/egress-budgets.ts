/** `budgets` of a policy file and of caisson.yaml: the same words for the same things. */
import type { EgressBudgets } from "../../egress-proxy/types.ts"
import { type Field, record, whole } from "./fields.ts"

const count = whole(0, Number.MAX_SAFE_INTEGER)

export const egressBudgetFields: Field<Partial<EgressBudgets>> = record<EgressBudgets>({
  bytesOut: ["bytes_out", count],
  bytesIn: ["bytes_in", count],
  requests: ["requests", count],
  connections: ["connections", count],
  distinctNames: ["distinct_names", count],
  connectTimeoutMs: ["connect_timeout_ms", count],
  idleTimeoutMs: ["idle_timeout_ms", count],
})
