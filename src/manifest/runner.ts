/**
 * `runner` (AIP-17): a slug, inline fields, or exactly one of `inline`, `ref`, `file`; and the older `runtime` block.
 *
 * Guarantees: unknown engines are refused; `docker` and `firecracker` mean the sandbox engine with a backend hint
 * (C-25); a RUNNER.md file is accepted as a reference and resolved by no one here (C-26); limits come out typed.
 */
import type { Context } from "./context.ts"
import { shown } from "./diagnostics.ts"
import { defined, isObject, object, optionalNumber, optionalObject, optionalText, texts, without } from "./fields.ts"
import { checkShape } from "./shape.ts"
import type { DriverLimits, EgressBudgetSpec, JsonObject, JsonValue } from "./types.ts"

const ENGINES = ["subprocess", "sandbox", "in-process"]
const FORMS = ["inline", "ref", "file"]

function settleEngine(block: JsonObject, path: string, context: Context): JsonObject {
  const engine = block["engine"]
  if (engine === undefined || (typeof engine === "string" && ENGINES.includes(engine))) return block
  if (engine === "docker" || engine === "firecracker") {
    if (context.mode === "compat") {
      context.report.lenient(
        "runner-engine-alias",
        `${path}.engine`,
        `\`${engine}\` is not an engine; taken as \`sandbox\``,
        "write `engine: sandbox`",
      )
      return { ...block, engine: "sandbox" }
    }
  }
  context.report.error(
    "runner-engine",
    `${path}.engine`,
    `the engine \`${shown(engine, 30)}\` is not known`,
    `write one of ${ENGINES.join(", ")}`,
  )
  return without(block, ["engine"])
}

const INLINE_KEYS = ["engine", "image", "needs", "limits"]

/** The runner as it is kept in the contract, its engine canonical. */
export function readRunner(value: JsonValue | undefined, context: Context): JsonValue | undefined {
  if (!isObject(value)) return value
  const { report } = context
  const forms = FORMS.filter((form) => value[form] !== undefined)
  if (forms.length > 1)
    report.error("one-form-only", "runner", `\`runner\` has ${forms.join(" and ")} at once`, "keep one of them")
  if (forms.includes("ref") || forms.includes("file")) return value
  const path = forms.includes("inline") ? "runner.inline" : "runner"
  const block = forms.includes("inline") ? object(value, "inline") : value
  for (const key of Object.keys(block)) {
    if (!INLINE_KEYS.includes(key))
      report.error(
        "unknown-key",
        `${path}.${shown(key, 40)}`,
        `\`${shown(key, 40)}\` is not a known key of a runner`,
        `use ${INLINE_KEYS.join(", ")}`,
      )
  }
  const settled = settleEngine(block, path, context)
  if (settled["image"] !== undefined && settled["engine"] !== "sandbox") {
    report.error(
      "runner-image",
      `${path}.image`,
      "`image` is only for `engine: sandbox`",
      "remove it, or write `engine: sandbox`",
    )
  }
  checkShape("runner", settled, report, path)
  return settled
}

const positive = (from: JsonObject, key: string): number | undefined => optionalNumber(from, key)

export function readLimits(runner: JsonValue | undefined, metadata: JsonObject): DriverLimits {
  const limits = isObject(runner) ? object(runner, "limits") : {}
  const own = object(metadata, "limits")
  return defined({
    memoryMb: positive(limits, "memory_mb"),
    timeoutMs: positive(limits, "timeout_ms"),
    cpuMs: positive(limits, "cpu_ms"),
    diskMb: positive(own, "disk_mb"),
    pids: positive(own, "pids"),
    outputBytes: positive(own, "output_bytes"),
  })
}

export function readEgressBudget(metadata: JsonObject): EgressBudgetSpec | undefined {
  const budget = optionalObject(metadata, "egress_budget")
  if (budget === undefined) return undefined
  return defined({
    bytesOut: positive(budget, "bytes_out"),
    bytesIn: positive(budget, "bytes_in"),
    requests: positive(budget, "requests"),
    connections: positive(budget, "connections"),
    distinctNames: positive(budget, "distinct_names"),
    connectTimeoutMs: positive(budget, "connect_timeout_ms"),
    idleTimeoutMs: positive(budget, "idle_timeout_ms"),
  })
}

/** The older `runtime` block → `runner`, `network`, `auth.state.env` (AIP-17 §Compat). Its `fs` belongs to tools now. */
export function liftRuntime(front: JsonObject, context: Context): JsonObject {
  const runtime = optionalObject(front, "runtime")
  if (runtime === undefined) return front
  const { report } = context
  if (context.mode === "strict" || front["runner"] !== undefined) {
    report.error(
      "runtime-block",
      "runtime",
      front["runner"] === undefined
        ? "the `runtime` block was replaced by `runner` (AIP-17)"
        : "`runtime` and `runner` are given at once",
      "keep `runner` only",
    )
    return without(front, ["runtime"])
  }
  report.lenient(
    "runtime-block",
    "runtime",
    "the `runtime` block was replaced by `runner` (AIP-17); it was converted",
    "write `runner: { engine, limits }` and `network`",
  )
  if (runtime["fs"] !== undefined)
    report.warn(
      "runtime-fs",
      "runtime.fs",
      "`runtime.fs` is not carried over",
      "write `inputsFiles` and `outputsFiles` in the TOOL.md, or `sandbox.fs` in a cli driver",
    )
  const mode = optionalText(runtime, "mode")
  const limits = defined({
    memory_mb: optionalNumber(runtime, "memory_mb_max"),
    cpu_ms: optionalNumber(runtime, "cpu_ms_max"),
    timeout_ms: optionalNumber(runtime, "timeout_ms"),
  })
  const egress = optionalObject(runtime, "network")
  const auth = object(front, "auth")
  const env = texts(runtime, "env")
  return {
    ...without(front, ["runtime"]),
    runner: { engine: mode === undefined || mode === "sandbox" ? "subprocess" : mode, limits: limits as JsonObject },
    ...(egress !== undefined && front["network"] === undefined ? { network: { egress: texts(egress, "egress") } } : {}),
    ...(env.length > 0
      ? {
          auth: { ...auth, state: { ...object(auth, "state"), env: [...texts(object(auth, "state"), "env"), ...env] } },
        }
      : {}),
  }
}
