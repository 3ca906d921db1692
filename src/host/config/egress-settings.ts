/** What config files say of egress, as the proxy takes it: the same words in caisson.yaml and in a policy file. */
import type { EgressBudgets, EgressServices } from "../../egress-proxy/types.ts"
import type { PolicyInput } from "../../egress-proxy/index.ts"
import { createReport, type Report } from "../../manifest/values/diagnostics.ts"
import type { Diagnostic } from "../../manifest/types.ts"
import { readSettings } from "./settings.ts"
import { addressAndPort, cidr, parseEach, parseMap } from "./values.ts"

const BUDGETS = {
  bytes_out: "bytesOut",
  bytes_in: "bytesIn",
  requests: "requests",
  connections: "connections",
  distinct_names: "distinctNames",
  connect_timeout_ms: "connectTimeoutMs",
  idle_timeout_ms: "idleTimeoutMs",
} as const satisfies Readonly<Record<string, keyof EgressBudgets>>
export type BudgetSettings = Partial<Record<keyof typeof BUDGETS, number>>

export const budgetsOf = (written: BudgetSettings): Partial<EgressBudgets> =>
  Object.freeze(
    Object.fromEntries(Object.entries(written).map(([key, value]) => [BUDGETS[key as keyof typeof BUDGETS], value])),
  )

export const servicesOf = (written: Readonly<Record<string, string>>, path: string, report: Report): EgressServices =>
  parseMap(written, addressAndPort, path, report)

interface PolicySettings {
  readonly egress?: readonly string[]
  readonly services?: Readonly<Record<string, string>>
  readonly private?: readonly string[]
  readonly budgets?: BudgetSettings
  readonly read_only_http?: "enforce" | "report" | "off"
}

type EgressPolicyResult =
  | { readonly ok: true; readonly policy: PolicyInput }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] }

/** A policy file of the proxy on its own. Its entries are the proxy's to judge. */
export const readEgressPolicy = (source: string, file: string): EgressPolicyResult => {
  const report = createReport(file)
  const written = readSettings<PolicySettings>(source, "egress-policy", report)
  if (written === undefined) return { ok: false, diagnostics: report.diagnostics }
  const { egress = [], services, private: granted, budgets, read_only_http: readOnlyHttp } = written
  const policy: PolicyInput = {
    egress,
    ...(services === undefined ? {} : { services: servicesOf(services, "services", report) }),
    ...(granted === undefined ? {} : { private: parseEach(granted, cidr, "private", report) }),
    ...(budgets === undefined ? {} : { budgets: budgetsOf(budgets) }),
    ...(readOnlyHttp === undefined ? {} : { readOnlyHttp }),
  }
  return report.failed ? { ok: false, diagnostics: report.diagnostics } : { ok: true, policy }
}
