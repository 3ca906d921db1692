/**
 * Text of a caisson.yaml → OperatorConfig, or diagnostics with path and fix.
 *
 * Guarantees: what `schemas/config.schema.json` and the parsers of values refuse is an error, and no part of a file with
 * errors is used. What is not written has its default. Pure.
 */
import type { Annotations } from "../../manifest/formats/annotations.ts"
import {
  amplifierHooksOf,
  type AmplifierHookSettings,
  amplifierOf,
  type AmplifierSettings,
} from "./amplifier-settings.ts"
import { createReport, joinPath, type Report } from "../../manifest/values/diagnostics.ts"
import { parseMutates } from "../../manifest/values/mutates.ts"
import type { Diagnostic } from "../../manifest/types.ts"
import type { Limits } from "../../sandbox/backend.ts"
import {
  type BoundContextSettings,
  boundContextOf,
  type CallBudgetSettings,
  callBudgetsOf,
  type DataClass,
} from "./call-settings.ts"
import { type BudgetSettings, budgetsOf, servicesOf } from "./egress-settings.ts"
import { type LoginSettings, loginsOf, type McpLoginSettings, mcpLoginsOf } from "./login-settings.ts"
import { type ServeSettings, serveOf } from "./serve-settings.ts"
import { readSettings } from "./settings.ts"
import { type StoreSettings, storeOf } from "./store-settings.ts"
import { type VaultSettings, vaultOf } from "./vault-settings.ts"
import { defaultConfig, type OperatorConfig } from "./types.ts"
import { cidr, egressEntry, isServiceName, parseEach, parseMap, pathFrom, webAddress } from "./values.ts"

const MiB = 1024 * 1024

/** The same report, for what stands below a setting. */
const within = (report: Report, base: string): Report => ({
  ...report,
  error: (rule, path, message, fix) => report.error(rule, `${base}.${path}`, message, fix),
  warn: (rule, path, message, fix) => report.warn(rule, `${base}.${path}`, message, fix),
})

const LIMITS = {
  wall_ms: ["wallMs", 1],
  memory_mb: ["memoryBytes", MiB],
  pids: ["pids", 1],
  cpu_ms: ["cpuMs", 1],
  cpus: ["cpus", 1],
  disk_mb: ["diskBytes", MiB],
  output_kb: ["outputBytes", 1024],
  open_files: ["openFiles", 1],
} as const satisfies Readonly<Record<string, readonly [keyof Limits, scale: number]>>

/** As the schema has it. */
interface Settings {
  readonly manifests?: readonly string[]
  readonly workspaces?: readonly string[]
  readonly backend?: OperatorConfig["backend"]
  readonly docker?: Partial<OperatorConfig["docker"]>
  readonly limits?: Partial<Record<keyof typeof LIMITS, number>>
  readonly egress?: {
    readonly services?: Readonly<Record<string, string>>
    readonly private?: readonly string[]
    readonly allow?: readonly string[]
    readonly budgets?: BudgetSettings
  }
  readonly undeclared_egress?: OperatorConfig["undeclaredEgress"]
  readonly undeclared_write?: OperatorConfig["undeclaredWrite"]
  readonly policy_tags?: Partial<OperatorConfig["policyTags"]>
  readonly region?: string
  readonly region_allows_global?: boolean
  readonly approvals?: {
    readonly on_mutate?: OperatorConfig["approvals"]["onMutate"]
    readonly hold_ms?: number
    readonly hold_count?: number
    readonly hold_mb?: number
  }
  readonly receipts?: { readonly segment_mb?: number; readonly keep_days?: number }
  readonly env?: Readonly<Record<string, string>>
  readonly install?: {
    readonly npm_registry?: string
    readonly pip_index?: string
    readonly cargo_registry?: string
    readonly go_proxy?: string
    readonly apt_sources?: string
    readonly hosts?: readonly string[]
    readonly on_demand?: boolean
    readonly without_hash?: OperatorConfig["install"]["withoutHash"]
    readonly prefer?: OperatorConfig["install"]["prefer"]
    readonly stall_ms?: number
    readonly download_ms?: number
    readonly disk_mb?: number
    readonly wall_ms?: number
  }
  readonly interpreters?: OperatorConfig["interpreters"]
  readonly builtin_hosts?: readonly string[]
  readonly read_only_http?: OperatorConfig["readOnlyHttp"]
  readonly serve?: ServeSettings
  readonly vault?: VaultSettings
  readonly store?: StoreSettings
  readonly logins?: Readonly<Record<string, LoginSettings>>
  readonly mcp_logins?: McpLoginSettings
  readonly budgets?: readonly CallBudgetSettings[]
  readonly context?: readonly BoundContextSettings[]
  readonly data_classes?: readonly DataClass[]
  readonly annotations?: Annotations
  readonly amplifier?: readonly AmplifierSettings[]
  readonly amplifier_hooks?: readonly AmplifierHookSettings[]
  readonly ceiling?: {
    readonly risk_level?: number
    readonly mutates?: readonly string[]
    readonly egress?: readonly string[]
    readonly secrets?: readonly string[]
  }
}

const approvalsOf = (written: NonNullable<Settings["approvals"]>): OperatorConfig["approvals"] => {
  const { approvals } = defaultConfig
  return Object.freeze({
    onMutate: written.on_mutate ?? approvals.onMutate,
    holdMs: written.hold_ms ?? approvals.holdMs,
    holdCount: written.hold_count ?? approvals.holdCount,
    holdBytes: written.hold_mb === undefined ? approvals.holdBytes : written.hold_mb * MiB,
  })
}

const DAY_MS = 86_400_000
const receiptsOf = ({ segment_mb: segment, keep_days: keep }: NonNullable<Settings["receipts"]>) =>
  Object.freeze({
    segmentBytes: segment === undefined ? defaultConfig.receipts.segmentBytes : segment * MiB,
    ...(keep === undefined ? {} : { keepMs: keep * DAY_MS }),
  })

const ceilingOf = (written: NonNullable<Settings["ceiling"]>, report: Report): OperatorConfig["ceiling"] => {
  const { risk_level: riskLevel, mutates, egress, secrets } = written
  if (mutates !== undefined) parseMutates(mutates, within(report, "ceiling"))
  return Object.freeze({
    ...(riskLevel === undefined ? {} : { riskLevel }),
    ...(mutates === undefined ? {} : { mutates }),
    ...(egress === undefined
      ? {}
      : { egress: parseEach(egress, egressEntry, "ceiling.egress", report).map((entry) => entry.text) }),
    ...(secrets === undefined ? {} : { secrets }),
  })
}

const limitsOf = (written: NonNullable<Settings["limits"]>): Partial<Limits> =>
  Object.freeze(
    Object.fromEntries(
      Object.entries(written).map(([key, value]) => {
        const [name, scale] = LIMITS[key as keyof typeof LIMITS]
        return [name, value * scale]
      }),
    ),
  )

const egressOf = (written: NonNullable<Settings["egress"]>, report: Report): OperatorConfig["egress"] => {
  const { services = {}, private: granted = [], allow, budgets } = written
  for (const name of Object.keys(services).filter((one) => !isServiceName(one)))
    report.error(
      "config-value",
      joinPath("egress.services", name),
      "a service is named by a plain host name in lower case",
      "write a name such as db.test",
    )
  return Object.freeze({
    services: servicesOf(services, "egress.services", report),
    private: parseEach(granted, cidr, "egress.private", report),
    ...(allow === undefined ? {} : { allow: parseEach(allow, egressEntry, "egress.allow", report) }),
    ...(budgets === undefined ? {} : { budgets: budgetsOf(budgets) }),
  })
}

const ADDRESSES = ["npm_registry", "pip_index", "cargo_registry", "go_proxy"] as const

const installOf = (
  written: NonNullable<Settings["install"]>,
  path: ReturnType<typeof pathFrom>,
  report: Report,
): OperatorConfig["install"] => {
  const { install } = defaultConfig
  const { hosts, on_demand: onDemand, disk_mb: disk, wall_ms: wallMs, apt_sources: apt, go_proxy: go } = written
  const goFolder = go?.startsWith("file://") === true ? go.slice("file://".length) : undefined
  const named = ADDRESSES.filter((name) => name !== "go_proxy" || goFolder === undefined).flatMap((name) =>
    written[name] === undefined ? [] : [[name, written[name]] as const],
  )
  const addresses = parseMap(Object.fromEntries(named), webAddress, "install", report)
  const paths = parseMap(
    { ...(apt === undefined ? {} : { apt_sources: apt }), ...(goFolder === undefined ? {} : { go_proxy: goFolder }) },
    path,
    "install",
    report,
  )
  return Object.freeze({
    npmRegistry: addresses["npm_registry"] ?? install.npmRegistry,
    pipIndex: addresses["pip_index"] ?? install.pipIndex,
    cargoRegistry: addresses["cargo_registry"] ?? install.cargoRegistry,
    goProxy:
      paths["go_proxy"] === undefined
        ? (addresses["go_proxy"] ?? install.goProxy)
        : Object.freeze({ folder: paths["go_proxy"] }),
    ...(paths["apt_sources"] === undefined ? {} : { aptSources: paths["apt_sources"] }),
    hosts: hosts === undefined ? install.hosts : parseEach(hosts, egressEntry, "install.hosts", report),
    onDemand: onDemand ?? install.onDemand,
    withoutHash: written.without_hash ?? install.withoutHash,
    prefer: written.prefer ?? install.prefer,
    stallMs: written.stall_ms ?? install.stallMs,
    downloadMs: written.download_ms ?? install.downloadMs,
    diskBytes: disk === undefined ? install.diskBytes : disk * MiB,
    wallMs: wallMs ?? install.wallMs,
  })
}

const configOf = (written: Settings, file: string, folder: string, report: Report): OperatorConfig => {
  const path = pathFrom(folder)
  const { manifests, workspaces, docker, limits, egress, policy_tags: tags, region, approvals, env } = written
  return Object.freeze({
    ...defaultConfig,
    file,
    ...(manifests === undefined ? {} : { manifests: parseEach(manifests, path, "manifests", report) }),
    ...(workspaces === undefined ? {} : { workspaces: parseEach(workspaces, path, "workspaces", report) }),
    backend: written.backend ?? defaultConfig.backend,
    docker: Object.freeze({ ...defaultConfig.docker, ...docker }),
    ...(limits === undefined ? {} : { limits: limitsOf(limits) }),
    ...(egress === undefined ? {} : { egress: egressOf(egress, report) }),
    undeclaredEgress: written.undeclared_egress ?? defaultConfig.undeclaredEgress,
    undeclaredWrite: written.undeclared_write ?? defaultConfig.undeclaredWrite,
    policyTags: Object.freeze({ ...defaultConfig.policyTags, ...tags }),
    ...(region === undefined ? {} : { region }),
    regionAllowsGlobal: written.region_allows_global ?? defaultConfig.regionAllowsGlobal,
    approvals: approvalsOf(approvals ?? {}),
    receipts: receiptsOf(written.receipts ?? {}),
    ...(env === undefined ? {} : { env: Object.freeze(env) }),
    install: installOf(written.install ?? {}, path, report),
    interpreters: parseMap({ ...written.interpreters }, path, "interpreters", report),
    builtinHosts: Object.freeze(written.builtin_hosts ?? defaultConfig.builtinHosts),
    readOnlyHttp: written.read_only_http ?? defaultConfig.readOnlyHttp,
    serve: serveOf(written.serve ?? {}, path, report),
    annotations: Object.freeze(written.annotations ?? defaultConfig.annotations),
    ceiling: ceilingOf(written.ceiling ?? {}, report),
    ...vaultOf(written.vault, path, report),
    ...storeOf(written.store, path, report),
    logins: loginsOf(written.logins ?? {}, report),
    mcpLogins: mcpLoginsOf(written.mcp_logins ?? {}, report),
    budgets: callBudgetsOf(written.budgets ?? []),
    context: boundContextOf(written.context ?? [], path),
    ...(written.data_classes === undefined ? {} : { dataClasses: Object.freeze(written.data_classes) }),
    amplifier: amplifierOf(written.amplifier ?? [], path),
    amplifierHooks: amplifierHooksOf(written.amplifier_hooks ?? [], path),
  })
}

type ConfigResult =
  | { readonly ok: true; readonly config: OperatorConfig }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] }

/** `folder` is what relative paths in the file are relative to. */
export const readConfig = (source: string, file: string, folder: string): ConfigResult => {
  const report = createReport(file)
  const written = readSettings<Settings>(source, "config", report)
  const config = written === undefined ? undefined : configOf(written, file, folder, report)
  return config === undefined || report.failed ? { ok: false, diagnostics: report.diagnostics } : { ok: true, config }
}
