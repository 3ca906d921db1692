/**
 * `defineRunner` and `defineSandbox`: blocks that other manifests hold (AIP-17, 36).
 *
 * Guarantees: a handle has every field, with the defaults applied; a runner that asks to run inside the host's process
 * is a process of its own for every origin but the operator's; a sandbox that says nothing of the network has none, and
 * carries no credential. Pure: nothing is started or resolved by them.
 */
import { checkCredentials } from "../manifest/values/credentials.ts"
import { createReport } from "../manifest/values/diagnostics.ts"
import { deepFreeze } from "../manifest/values/freeze.ts"
import { parseEgressEntry } from "../manifest/values/egress-entry.ts"
import { readRunner } from "../manifest/kinds/runner.ts"
import { checkShape } from "../manifest/schema/shape.ts"
import type { JsonObject } from "../manifest/types.ts"
import { ManifestError } from "./manifest-error.ts"
import { definer, frontOf } from "./made.ts"
import type { Keys } from "./spelling.ts"
import type { RunnerDefinition, RunnerHandle, SandboxDefinition, SandboxHandle } from "./types.ts"

/** What AIP-17 recommends where a runner says nothing. */
const MEMORY_MB = 256
const TIMEOUT_MS = 600_000
/** AIP-36, of one command */
const COMMAND_MS = 30_000

/** Whose manifests may ask for the host's own process; anything else, and no origin at all, is not trusted. */
const TRUSTED = ["operator", "builtin"]

const NO_CAP = Number.MAX_SAFE_INTEGER

const withOrigin = (fields: Omit<RunnerHandle, "resolveForOrigin">): RunnerHandle => {
  const handle = { ...fields }
  // Not a field: a handle that is written down or compared is its data.
  Object.defineProperty(handle, "resolveForOrigin", {
    enumerable: false,
    value: (origin: string) => {
      const downgraded = fields.engine === "in-process" && !TRUSTED.includes(origin)
      const engine = downgraded ? ("subprocess" as const) : fields.engine
      const resolved = withOrigin({ ...fields, engine })
      return Object.freeze(
        Object.defineProperty({ ...resolved, downgraded }, "resolveForOrigin", {
          enumerable: false,
          value: resolved.resolveForOrigin,
        }),
      )
    },
  })
  return deepFreeze(handle as RunnerHandle)
}

export const defineRunner = (definition: RunnerDefinition = {}): RunnerHandle => {
  const by = definer("defineRunner", "runner", "", {})
  const front = frontOf(by, definition, {})
  const report = createReport(by.file)
  const spec = readRunner(front, { file: by.file, mode: "strict", report })
  if (report.failed || spec?.form !== "inline") throw new ManifestError(by.name, report.diagnostics)
  const { engine, image = null, needs, limits } = spec
  return withOrigin({
    engine,
    image,
    needs: { ...needs, language: needs.language ?? "node" },
    limits: {
      memory_mb: limits.memoryMb ?? MEMORY_MB,
      timeout_ms: limits.timeoutMs ?? TIMEOUT_MS,
      cpu_ms: limits.cpuMs ?? NO_CAP,
    },
  })
}

const SANDBOX: Keys = {
  limits: { timeout_ms: true, memory_mb: true, cpu_ms: true },
  lifecycle: { pause_after_idle_ms: true, destroy_on_workspace_close: true },
  read_only: true,
}

export const defineSandbox = (definition: SandboxDefinition): SandboxHandle => {
  const by = definer("defineSandbox", "sandbox", definition.id ?? "", {})
  const front = frontOf(by, definition, SANDBOX)
  const report = createReport(by.file)
  checkCredentials(front, report)
  const shaped = checkShape("sandbox", front, report)
  const egress = ((front["network"] as JsonObject | undefined)?.["egress"] ?? []) as readonly string[]
  if (shaped)
    egress.forEach((entry, index) => {
      const parsed = parseEgressEntry(entry)
      if (!parsed.ok)
        report.error("egress-entry", `network.egress[${index}]`, parsed.message, parsed.fix ?? "name one host")
    })
  if (report.failed) throw new ManifestError(by.name, report.diagnostics)
  const limits = (front["limits"] ?? {}) as Readonly<Record<string, number>>
  const mounts = (front["mounts"] ?? []) as SandboxHandle["mounts"]
  return deepFreeze({
    provider: definition.provider,
    config: front["config"] as JsonObject,
    limits: {
      timeoutMs: limits["timeout_ms"] ?? COMMAND_MS,
      ...(limits["memory_mb"] === undefined ? {} : { memoryMb: limits["memory_mb"] }),
      ...(limits["cpu_ms"] === undefined ? {} : { cpuMs: limits["cpu_ms"] }),
    },
    egress,
    mounts: mounts.map((mount) => ({ ...mount, mode: mount.mode ?? "read-write" })),
    readOnly: front["read_only"] === true,
    front,
  })
}
