/**
 * `setup[]` (AIP-29 §Setup) → typed steps in their order.
 *
 * Guarantees: each step has an id of its own, a bounded time, and what its kind needs; what a step keeps goes to exactly
 * one place; a secret is never given as a default. Does not: run, ask or keep anything.
 */
import { readAddress } from "../values/address.ts"
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import {
  defined,
  flag,
  list,
  objects,
  object,
  optionalNumber,
  optionalObject,
  optionalText,
  text,
} from "../values/fields.ts"
import { limits } from "../limits.ts"
import type { JsonObject } from "../base-types.ts"
import { readWait } from "./waits.ts"

/** Where a step's value is kept; a command finds it as `${value}`. */
export type Persist =
  | { readonly to: "env"; readonly name: string }
  | { readonly to: "secret"; readonly slug: string }
  | { readonly to: "cmd"; readonly cmd: string }

/** One choice a line, as `value` or `value<TAB>label`. */
export type PromptOptions =
  | { readonly from: "list"; readonly values: readonly string[] }
  | { readonly from: "cmd"; readonly cmd: string; readonly timeoutMs: number }

export type PromptAnswer =
  | { readonly type: "text"; readonly default?: string }
  | { readonly type: "secret" }
  | { readonly type: "boolean"; readonly default?: boolean }
  | { readonly type: "select"; readonly options: PromptOptions; readonly default?: string }

interface Step {
  readonly id: string
  readonly description?: string
  /** the step is done already when this command ends so */
  readonly skipIf?: { readonly cmd: string; readonly exitCode: number; readonly timeoutMs: number }
}
export interface CommandStep extends Step {
  readonly kind: "cmd"
  readonly cmd: string
  readonly timeoutMs: number
  /** a terminal and a person */
  readonly interactive: boolean
  readonly persist?: Persist
}
export interface PromptStep extends Step {
  readonly kind: "prompt"
  readonly prompt: string
  readonly answer: PromptAnswer
  readonly persist?: Persist
}
export interface OAuthStep extends Step {
  readonly kind: "oauth"
  readonly secretSlug: string
}
export interface ExternalStep extends Step {
  readonly kind: "external"
  readonly url: string
  /** the page sends the person back; the value comes in this parameter */
  readonly callback?: { readonly param?: string; readonly timeoutMs: number }
  readonly persist?: Persist
}
export type SetupStep = CommandStep | PromptStep | OAuthStep | ExternalStep

function readPersist(step: JsonObject, at: string, context: Context): Persist | undefined {
  const block = optionalObject(step, "persist")
  if (block === undefined) return undefined
  const name = optionalText(block, "env")
  if (name !== undefined) return { to: "env", name }
  const slug = optionalText(block, "secret_slug")
  if (slug !== undefined) return { to: "secret", slug }
  const cmd = text(block, "cmd")
  if (!cmd.includes("${value}"))
    context.report.warn(
      "persist-without-value",
      `${at}.persist.cmd`,
      "the command does not name `${value}`; it cannot keep what the step gave",
      "write `${value}` where the value belongs",
    )
  return { to: "cmd", cmd }
}

function readSkip(step: JsonObject, at: string, context: Context): Step["skipIf"] {
  const block = optionalObject(step, "skip_if")
  if (block === undefined) return undefined
  const wait = { key: "timeout_ms", fallback: 5000, most: limits.setupProbeMs }
  return {
    cmd: text(block, "cmd"),
    exitCode: optionalNumber(block, "exit_code") ?? 0,
    timeoutMs: readWait(block, wait, `${at}.skip_if`, context),
  }
}

function readOptions(step: JsonObject, at: string, context: Context): PromptOptions | undefined {
  const block = optionalObject(step, "options")
  if (block !== undefined) {
    const wait = { key: "timeout_ms", fallback: 30_000, most: limits.setupProbeMs }
    return { from: "cmd", cmd: text(block, "cmd"), timeoutMs: readWait(block, wait, `${at}.options`, context) }
  }
  const values = list(step, "options").filter((value) => typeof value === "string")
  return values.length === 0 ? undefined : { from: "list", values }
}

function readAnswer(step: JsonObject, at: string, context: Context): PromptAnswer {
  const { report } = context
  const type = optionalText(step, "type") ?? "text"
  const given = step["default"]
  const options = readOptions(step, at, context)
  if (options !== undefined && type !== "select")
    report.warn("options-unused", `${at}.options`, `a prompt of type ${type} offers no options`, "write `type: select`")
  if (type === "secret") {
    if (given !== undefined)
      report.error(
        "secret-value",
        `${at}.default`,
        "a default would put a secret's value into a manifest",
        "remove it, and treat the value as leaked if it was one",
      )
    return { type }
  }
  const wanted = type === "boolean" ? "boolean" : "string"
  if (given !== undefined && typeof given !== wanted)
    report.error(
      "wrong-type",
      `${at}.default`,
      `the default of a ${type} prompt must be ${wanted === "string" ? "text" : "true or false"}, not \`${shown(given, 40)}\``,
      wanted === "string" ? "quote it" : "write true or false",
    )
  if (type === "boolean")
    return defined({ type: "boolean" as const, default: typeof given === "boolean" ? given : undefined })
  const fallback = typeof given === "string" ? given : undefined
  if (type !== "select") return defined({ type: "text" as const, default: fallback })
  if (options === undefined)
    report.error(
      "missing-field",
      `${at}.options`,
      "a prompt of type select needs `options`",
      "add `options: [one, two]`",
    )
  if (options?.from === "list" && fallback !== undefined && !options.values.includes(fallback))
    report.error(
      "not-one-of",
      `${at}.default`,
      `\`${shown(fallback, 40)}\` is not one of the options`,
      `write \`${shown(options.values[0], 40)}\` or another of these`,
    )
  return defined({ type: "select" as const, options: options ?? { from: "list", values: [] }, default: fallback })
}

function readExternal(step: JsonObject, common: Step, at: string, context: Context): ExternalStep {
  const address = readAddress(text(step, "url"))
  if (!address.ok) context.report.error("bad-value", `${at}.url`, address.message, "write the full `https://…` address")
  const callback = optionalObject(step, "callback")
  const wait = { key: "timeout_ms", fallback: 600_000, most: limits.callbackMs }
  return defined({
    ...common,
    kind: "external" as const,
    url: text(step, "url"),
    callback:
      callback === undefined
        ? undefined
        : defined({
            param: optionalText(callback, "param"),
            timeoutMs: readWait(callback, wait, `${at}.callback`, context),
          }),
    persist: readPersist(step, at, context),
  })
}

function readStep(step: JsonObject, at: string, context: Context): SetupStep {
  const common: Step = defined({
    id: text(step, "id"),
    description: optionalText(step, "description"),
    skipIf: readSkip(step, at, context),
  })
  switch (text(step, "kind")) {
    case "prompt":
      return defined({
        ...common,
        kind: "prompt" as const,
        prompt: text(step, "prompt"),
        answer: readAnswer(step, at, context),
        persist: readPersist(step, at, context),
      })
    case "oauth":
      return { ...common, kind: "oauth", secretSlug: text(step, "secret_slug") }
    case "external":
      return readExternal(step, common, at, context)
    default:
      return defined({
        ...common,
        kind: "cmd" as const,
        cmd: text(step, "cmd"),
        timeoutMs: readWait(step, { key: "timeout_ms", fallback: 60_000, most: limits.setupStepMs }, at, context),
        interactive: flag(step, "interactive"),
        persist: readPersist(step, at, context),
      })
  }
}

/** `${input.X}` of a step means the value of an earlier one. */
function checkReferences(step: JsonObject, at: string, earlier: ReadonlySet<string>, context: Context): void {
  const texts = [text(step, "cmd"), text(step, "url"), text(object(step, "persist"), "cmd")]
  for (const [, name = ""] of texts.join("\n").matchAll(/\$\{\s*input\.([\w-]+)/g))
    if (!earlier.has(name))
      context.report.warn(
        "setup-reference",
        at,
        `\`\${input.${shown(name, 40)}}\` names no earlier step`,
        "write the id of a step that stands before this one",
      )
}

export function readSetup(front: JsonObject, context: Context): readonly SetupStep[] {
  const seen = new Set<string>()
  return objects(front, "setup").map((entry, i) => {
    const at = joinPath("setup", i)
    const step = readStep(entry, at, context)
    if (seen.has(step.id))
      context.report.error(
        "setup-duplicate",
        `${at}.id`,
        `the id \`${shown(step.id, 64)}\` is used twice`,
        "give each step an id of its own",
      )
    checkReferences(entry, at, seen, context)
    seen.add(step.id)
    return step
  })
}
