/**
 * Text of a caisson.yaml → OperatorConfig, or diagnostics with path and fix.
 *
 * Guarantees: strict. An unknown key, a value of the wrong kind, or an egress entry that is not canonical is an error;
 * nothing is guessed and no part of a file with errors is used. Read by the same safe parser as manifests. Pure.
 */
import { isAbsolute, resolve } from "node:path"
import { createReport } from "../../manifest/diagnostics.ts"
import { type EgressEntry, parseEgressEntry } from "../../manifest/egress-entry.ts"
import { parseYaml } from "../../manifest/safe-yaml.ts"
import type { Diagnostic } from "../../manifest/types.ts"
import type { Limits } from "../../sandbox/backend.ts"
import { egressBudgetFields } from "./egress-budgets.ts"
import {
  addressAndPort,
  cidr,
  dictionary,
  type Field,
  flag,
  list,
  oneOf,
  record,
  share,
  text,
  whole,
} from "./fields.ts"
import { defaultConfig, type OperatorConfig } from "./types.ts"

const MiB = 1024 * 1024
const WEEK_MS = 7 * 24 * 3600 * 1000

/** Names the host sets itself; a value from the config would break the sandbox's own view. */
const OWN_ENV = new Set([
  "PATH",
  "HOME",
  "TMPDIR",
  "USER",
  "LOGNAME",
  "PWD",
  "HTTP_PROXY",
  "HTTPS_PROXY",
  "ALL_PROXY",
  "NO_PROXY",
])

const limits = record<Limits>({
  wallMs: ["wall_ms", whole(1, WEEK_MS)],
  memoryBytes: ["memory_mb", whole(1, 1 << 20, MiB)],
  pids: ["pids", whole(1, 1 << 20)],
  cpuMs: ["cpu_ms", whole(1, WEEK_MS)],
  cpus: ["cpus", share],
  diskBytes: ["disk_mb", whole(1, 1 << 24, MiB)],
  outputBytes: ["output_kb", whole(1, 1 << 20, 1024)],
  openFiles: ["open_files", whole(16, 1 << 20)],
})

const egressEntry: Field<EgressEntry> = text<EgressEntry>((value) => {
  const parsed = parseEgressEntry(value)
  return parsed.ok
    ? parsed.entry
    : { fault: [parsed.message, parsed.fix ?? "write host, host:port, *.host or tcp://host:port"] }
})

const serviceName = (name: string): readonly [string, string] | undefined => {
  const parsed = parseEgressEntry(name)
  if (parsed.ok && !parsed.entry.wildcard && parsed.entry.text === name && !name.includes(":")) return undefined
  return ["a service is named by a plain host name in lower case", "write a name such as db.test"]
}

const tag = text<string>((value) =>
  /^[a-z0-9][a-z0-9-]{0,63}$/.test(value)
    ? value
    : {
        fault: [
          "a policy tag has lower-case letters, digits and hyphens",
          `write ${value.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-")}`,
        ],
      },
)
const envName = (name: string): readonly [string, string] | undefined => {
  if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name))
    return ["this is not a name of an environment variable", "use letters, digits and underscores"]
  if (OWN_ENV.has(name.toUpperCase())) return ["the host sets this variable itself inside every sandbox", "remove it"]
  return undefined
}
const envValue = text<string>((value) =>
  value.includes("\0") ? { fault: ["a value may not hold a NUL character", "remove it"] } : value,
)

const engineAddress = text<string>((value) =>
  /^(unix:\/\/\/|tcp:\/\/)[^\s\0]+$/.test(value)
    ? value
    : { fault: ["an engine is named by a socket or an address", "write unix:///run/docker.sock or tcp://host:port"] },
)

interface Written {
  manifests: readonly string[]
  workspaces: readonly string[]
  backend: "namespace" | "docker"
  docker: Partial<OperatorConfig["docker"]>
  limits: Partial<Limits>
  egress: Partial<OperatorConfig["egress"]>
  undeclaredEgress: "refuse" | "report"
  undeclaredWrite: "refuse" | "warn"
  policyTags: Partial<OperatorConfig["policyTags"]>
  region: string
  regionAllowsGlobal: boolean
  approvals: Partial<{ onMutate: "auto" | "ask" }>
  env: Readonly<Record<string, string>>
  readOnlyHttp: "enforce" | "report" | "off"
}

const config = (folder: string): Field<Partial<Written>> => {
  const path = text<string>((value) =>
    value === "" || value.startsWith("~")
      ? { fault: ["`~` is not expanded here", "write an absolute path, or one relative to this file"] }
      : isAbsolute(value)
        ? value
        : resolve(folder, value),
  )
  return record<Written>({
    manifests: ["manifests", list(path)],
    workspaces: ["workspaces", list(path)],
    backend: ["backend", oneOf("namespace", "docker")],
    docker: [
      "docker",
      record<OperatorConfig["docker"]>({
        engine: ["engine", engineAddress],
        rootfs: ["rootfs", oneOf("host", "image")],
        pool: ["pool", whole(0, 64)],
      }),
    ],
    limits: ["limits", limits],
    egress: [
      "egress",
      record<OperatorConfig["egress"]>({
        services: ["services", dictionary(serviceName, addressAndPort)],
        private: ["private", list(cidr)],
        allow: ["allow", list(egressEntry)],
        budgets: ["budgets", egressBudgetFields],
      }),
    ],
    undeclaredEgress: ["undeclared_egress", oneOf("refuse", "report")],
    undeclaredWrite: ["undeclared_write", oneOf("refuse", "warn")],
    policyTags: [
      "policy_tags",
      record<OperatorConfig["policyTags"]>({ allow: ["allow", list(tag)], deny: ["deny", list(tag)] }),
    ],
    region: [
      "region",
      text<string>((value) =>
        /^[a-z0-9][a-z0-9-]{0,63}$/.test(value)
          ? value
          : { fault: ["a region has lower-case letters, digits and hyphens", "write a region such as eu"] },
      ),
    ],
    regionAllowsGlobal: ["region_allows_global", flag],
    approvals: ["approvals", record<{ onMutate: "auto" | "ask" }>({ onMutate: ["on_mutate", oneOf("auto", "ask")] })],
    env: ["env", dictionary(envName, envValue)],
    readOnlyHttp: ["read_only_http", oneOf("enforce", "report", "off")],
  })
}

export type ConfigResult =
  | { readonly ok: true; readonly config: OperatorConfig }
  | { readonly ok: false; readonly diagnostics: readonly Diagnostic[] }

/** `folder` is what relative paths in the file are relative to. */
export const readConfig = (source: string, file: string, folder: string): ConfigResult => {
  const report = createReport(file)
  const parsed = parseYaml(source, report)
  if (!parsed.ok) return { ok: false, diagnostics: report.diagnostics }
  const written = parsed.value === null ? {} : config(folder)(parsed.value, "", report)
  if (report.failed || written === undefined) return { ok: false, diagnostics: report.diagnostics }
  const { egress, policyTags, approvals, docker, ...rest } = written
  return {
    ok: true,
    config: Object.freeze({
      ...defaultConfig,
      ...rest,
      file,
      docker: Object.freeze({ ...defaultConfig.docker, ...docker }),
      egress: Object.freeze({ ...defaultConfig.egress, ...egress }),
      policyTags: Object.freeze({ ...defaultConfig.policyTags, ...policyTags }),
      approvals: Object.freeze({ ...defaultConfig.approvals, ...approvals }),
    }),
  }
}
