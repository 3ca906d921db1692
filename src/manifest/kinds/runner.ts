/**
 * `runner` (AIP-17): a word, inline fields, or exactly one of `inline`, `ref`, `file` → RunnerSpec; and the older
 * `runtime` block.
 *
 * Guarantees: unknown engines are refused; `docker` and `firecracker` mean the sandbox engine with a backend hint
 * (C-25); a RUNNER.md that was found is read in place of the name or path that leads to it (C-26), one that was not stays
 * a reference, which no host takes for a runner; limits come out typed.
 */
import type { Context } from "../values/context.ts"
import { shown } from "../values/diagnostics.ts"
import {
  defined,
  isObject,
  object,
  optionalNumber,
  optionalObject,
  optionalText,
  texts,
  without,
} from "../values/fields.ts"
import { checkShape } from "../schema/shape.ts"
import type { DriverLimits, EgressBudgetSpec, JsonObject, JsonValue } from "../base-types.ts"

export type RunnerEngine = "subprocess" | "sandbox" | "in-process"
export interface RunnerNeeds {
  readonly language?: "node" | "python" | "multi"
  readonly native: readonly string[]
  readonly npm: readonly string[]
  readonly pip: readonly string[]
}
export type RunnerSpec =
  | {
      readonly form: "inline"
      readonly engine: RunnerEngine
      /** what `engine: docker` or `firecracker` hinted at (C-25) */
      readonly backend?: "docker" | "firecracker"
      /** only with the engine `sandbox`; absent: picked from `needs` */
      readonly image?: string
      readonly needs: RunnerNeeds
      readonly limits: { readonly memoryMb?: number; readonly timeoutMs?: number; readonly cpuMs?: number }
    }
  | { readonly form: "ref"; readonly ref: string }
  | { readonly form: "file"; readonly file: string }

/** Is an image named by what it is? A name alone means another one tomorrow. */
export const isPinned = (image: string): boolean =>
  /^(?:[a-z0-9][A-Za-z0-9._/:-]{0,254}@)?sha256:[0-9a-f]{64}$/.test(image)

const ENGINES = ["subprocess", "sandbox", "in-process"]
const ALIASES = ["docker", "firecracker"] as const
const FORMS = ["inline", "ref", "file"] as const

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

function readInline(block: JsonObject, path: string, context: Context): RunnerSpec {
  const { report } = context
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
  const needs = object(settled, "needs")
  const limits = object(settled, "limits")
  return defined({
    form: "inline" as const,
    engine: (optionalText(settled, "engine") ?? "subprocess") as RunnerEngine,
    backend: ALIASES.find((alias) => alias === block["engine"]),
    image: optionalText(settled, "image"),
    needs: defined({
      language: optionalText(needs, "language") as RunnerNeeds["language"] | undefined,
      native: texts(needs, "native"),
      npm: texts(needs, "npm"),
      pip: texts(needs, "pip"),
    }),
    limits: defined({
      memoryMb: optionalNumber(limits, "memory_mb"),
      timeoutMs: optionalNumber(limits, "timeout_ms"),
      cpuMs: optionalNumber(limits, "cpu_ms"),
    }),
  })
}

/** A word alone is an engine where it is the name of one, else a runner registered under that name. */
const readWord = (word: string, context: Context): RunnerSpec =>
  [...ENGINES, ...ALIASES].includes(word)
    ? readInline({ engine: word }, "runner", context)
    : readNamed("ref", word, context)

/** What a RUNNER.md says of itself beside what it declares. */
const OF_ITSELF = ["schema", "id", "name", "description", "version", "tags", "metadata"]

const readNamed = (form: "ref" | "file", named: string, context: Context): RunnerSpec => {
  const front = context.links?.runner(context.file, named)
  if (front !== undefined) return readInline(without(front, OF_ITSELF), "runner", context)
  return form === "ref" ? { form, ref: named } : { form, file: named }
}

/** Absent: a process of its own. */
export function readRunner(value: JsonValue | undefined, context: Context): RunnerSpec | undefined {
  if (typeof value === "string") return readWord(value, context)
  if (!isObject(value)) return undefined
  const forms = FORMS.filter((form) => value[form] !== undefined)
  if (forms.length > 1)
    context.report.error("one-form-only", "runner", `\`runner\` has ${forms.join(" and ")} at once`, "keep one of them")
  if (forms.includes("inline")) return readInline(object(value, "inline"), "runner.inline", context)
  const [form] = forms
  if (form !== "ref" && form !== "file") return readInline(value, "runner", context)
  const named = optionalText(value, form)
  if (named === undefined || named === "") {
    context.report.error("wrong-type", `runner.${form}`, `\`runner.${form}\` must be text`, "write a name or a path")
    return undefined
  }
  return readNamed(form, named, context)
}

export function readLimits(runner: RunnerSpec | undefined, metadata: JsonObject): DriverLimits {
  const own = object(metadata, "limits")
  return defined({
    ...(runner?.form === "inline" ? runner.limits : {}),
    diskMb: optionalNumber(own, "disk_mb"),
    pids: optionalNumber(own, "pids"),
    outputBytes: optionalNumber(own, "output_bytes"),
  })
}

export function readEgressBudget(metadata: JsonObject): EgressBudgetSpec | undefined {
  const budget = optionalObject(metadata, "egress_budget")
  if (budget === undefined) return undefined
  return defined({
    bytesOut: optionalNumber(budget, "bytes_out"),
    bytesIn: optionalNumber(budget, "bytes_in"),
    requests: optionalNumber(budget, "requests"),
    connections: optionalNumber(budget, "connections"),
    distinctNames: optionalNumber(budget, "distinct_names"),
    connectTimeoutMs: optionalNumber(budget, "connect_timeout_ms"),
    idleTimeoutMs: optionalNumber(budget, "idle_timeout_ms"),
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
