/**
 * Step 7: what happened, against what was declared.
 *
 * Guarantees: pure over what the sandbox reported. A broken sandbox or a cancelled call is never read as anything
 * else; then a violation outweighs a failure of the tool, and both outweigh its output. Only a verdict that is ok may
 * be committed. Effects that nobody may commit (special files, setuid) are a violation whatever the operator set.
 */
import { compileSchema } from "../../manifest/schema/json-schema.ts"
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"
import { faultsText } from "../invoke/input-faults.ts"
import { outputStart, unreadJson } from "../invoke/output-faults.ts"
import type { ReportedEffect } from "../types.ts"
import type { HostCore } from "./core.ts"
import { judgeEffects } from "./judging/effects.ts"
import type { Judged, Ran } from "./steps.ts"
import { blameDenial, isOfTheTool, remediesOf } from "./judging/denials.ts"
import { badOutput, keptOutputs, outputNotes } from "./judging/files.ts"
import { classified } from "./judging/told.ts"
import { notInvited } from "./judging/second-run.ts"

const SHOWN = 20
/** The way on from what nobody can declare. */
export const LEAVE_IT_ALONE = "let the tool leave it alone"
const NOT_STARTED: ReadonlySet<string> = new Set(["not_listed", "not_startable"])

/** A rename touches two paths, and either may be the undeclared one. */
const named = ({ from, path }: ReportedEffect): string => (from === undefined ? path : `${from} → ${path}`)

const writeViolation = (effects: readonly ReportedEffect[], warn: boolean): Failure | undefined => {
  const refused = effects.filter((effect) => effect.refused !== undefined)
  const undeclared = effects.filter((effect) => !effect.declared)
  const bad = refused.length > 0 ? refused : warn ? [] : undeclared
  if (bad.length === 0) return undefined
  const [first] = bad
  const what =
    refused.length > 0
      ? `made ${first?.path}, which can never be committed: ${first?.refused}`
      : `wrote outside what its contract declares: ${first === undefined ? "" : named(first)}${bad.length > 1 ? ` and ${bad.length - 1} more` : ""}`
  return {
    ok: false,
    code: "undeclared_write",
    message: `the tool ${what}; nothing was committed`,
    // Nothing that could be declared makes it one that may be committed.
    ...(refused.length > 0 ? { hint: LEAVE_IT_ALONE } : {}),
    details: {
      paths: bad.slice(0, SHOWN).flatMap(({ from, path }) => (from === undefined ? [path] : [from, path])),
      total: bad.length,
    },
  }
}

const violation = (
  core: HostCore,
  { attempt: { denied, outcome }, within }: Ran,
  effects: readonly ReportedEffect[],
): Failure | undefined => {
  if (!outcome.ok && outcome.code === "undeclared_exec") return outcome
  // What a tool asked for on its own commits nothing to the workspace, whatever the operator lets calls of people do.
  const write = writeViolation(effects, core.config.undeclaredWrite === "warn" && within === undefined)
  if (write !== undefined) return write
  // A program that was not there to be started was not started: that is told, and the tool goes on.
  const exec = denied.find(({ layer, reason }) => layer === "exec" && !NOT_STARTED.has(reason))
  if (exec !== undefined)
    return {
      ok: false,
      code: "undeclared_exec",
      message: `the tool ran ${exec.target}, which its driver does not declare; nothing was committed`,
      details: { program: exec.target },
    }
  const misuse = denied.find((denial) => denial.reason === "secret_misuse")
  if (misuse !== undefined)
    return {
      ok: false,
      code: "secret_misuse",
      message: `the tool sent a secret's placeholder to ${misuse.target}, where it does not belong; nothing was committed`,
      details: { target: misuse.target },
    }
  const dial = denied.find((denial) => denial.layer === "egress")
  if (dial !== undefined && core.config.undeclaredEgress === "refuse")
    return {
      ok: false,
      code: "egress_denied",
      message: `the tool dialled ${dial.target}, which its driver does not declare; nothing was committed`,
      details: { target: dial.target, reason: dial.reason },
    }
  return undefined
}

const REMEDY = { undeclared_write: "write", undeclared_exec: "exec", egress_denied: "egress" } as const

/** With what its author can declare, in the words of the driver's kind. */
const withRemedy = (ran: Ran, broken: Failure | undefined): Failure | undefined => {
  if (broken === undefined || broken.hint !== undefined || !Object.hasOwn(REMEDY, broken.code)) return broken
  const hint = remediesOf(ran)[REMEDY[broken.code as keyof typeof REMEDY]]
  return hint === undefined ? broken : { ...broken, hint }
}

/** What each driver's entry leaves of its contract's outputs, frozen, so that it is compiled once. */
const narrowedOutputs = new WeakMap<readonly string[], { readonly of: JsonSchema; readonly left: JsonSchema }>()

/** The contract's outputs without those that the driver drops. */
const narrowed = (schema: JsonSchema, drop: readonly string[]): JsonSchema => {
  const required = schema["required"]
  if (drop.length === 0 || !Array.isArray(required)) return schema
  const known = narrowedOutputs.get(drop)
  if (known?.of === schema) return known.left
  const left: JsonSchema = Object.freeze({
    ...schema,
    required: (required as readonly JsonValue[]).filter((name) => typeof name !== "string" || !drop.includes(name)),
  })
  narrowedOutputs.set(drop, { of: schema, left })
  return left
}

const outputFault = (ran: Ran, value: JsonValue): Failure | undefined => {
  const { tool, route, driver, command } = ran
  const format = command.run === "program" ? command.format : "json"
  const compiled = compileSchema(narrowed(tool.outputs, route.implementation.dropOutputs))
  if (!compiled.ok)
    return {
      ok: false,
      code: "manifest_invalid",
      message: `the tool's schema for its output cannot be used: ${compiled.message}`,
      hint: compiled.fix,
      details: {},
    }
  const result = compiled.validate(value)
  if (result.ok) return undefined
  const errors: JsonObject[] = result.errors.map(({ path, message }) => ({ path, message }))
  const unread = unreadJson(value, format, driver.key)
  return {
    ok: false,
    code: "output_invalid",
    message: `${faultsText("the output", result.errors)}${unread === undefined ? "" : `: ${unread.message}`}`,
    ...(unread === undefined ? {} : { hint: unread.hint }),
    details: { errors, format, output: outputStart(value) },
  }
}

const needsApproval = ({ approval, plan }: Ran, effects: readonly ReportedEffect[]): Failure | undefined => {
  if (plan || approval.onEffects === "commit" || effects.length === 0) return undefined
  return {
    ok: false,
    code: "approval_required",
    message: `the call changed ${effects.length} path${effects.length === 1 ? "" : "s"} of the workspace, which needs a person's approval; nothing was committed`,
    details: {
      approval: approval.class,
      paths: effects.slice(0, SHOWN).map((effect) => effect.path),
      total: effects.length,
    },
  }
}

/** Endings that say nothing about the tool. */
const isOurs = (outcome: Ran["attempt"]["outcome"]): outcome is Failure =>
  !outcome.ok && (outcome.code === "internal" || outcome.code === "cancelled")

/** That effects outside are unknown stays true of a call that also violated its contract. */
const unknownCommit = (outcome: Ran["attempt"]["outcome"]): JsonObject =>
  !outcome.ok && outcome.details["commit"] !== undefined ? { commit: outcome.details["commit"] } : {}

const failed = (
  ran: Ran,
  verdict: Failure,
  effects: readonly ReportedEffect[],
): Pick<Judged, "verdict" | "keptFiles"> => {
  const kept = keptOutputs(ran, verdict, effects)
  return { verdict, ...(kept === undefined ? {} : { keptFiles: kept }) }
}

/** A command that failed by its own word, before a person who sees what it changed: they decide. */
const keptAnyway = (
  ran: Ran,
  failure: Failure,
  effects: readonly ReportedEffect[],
): Pick<Judged, "verdict" | "ifApproved" | "failedBefore"> | undefined => {
  const { command, ask } = ran
  if (command.run !== "program" || command.keepsAnyway !== true || ask === undefined || !isOfTheTool(failure))
    return undefined
  const asked = needsApproval(ran, effects)
  if (asked === undefined) return undefined
  const { exit_code: code, signal } = failure.details
  const value: JsonObject = {
    ...(code === undefined ? {} : { exit_code: code }),
    ...(signal === undefined ? {} : { signal }),
  }
  return {
    verdict: { ...asked, details: { ...asked.details, ...value } },
    ifApproved: { ok: true, value, notes: [failure.message] },
    failedBefore: failure.message,
  }
}

export const judge = async (core: HostCore, ran: Ran): Promise<Judged> => {
  const { effects, late } = await judgeEffects(ran)
  const { outcome } = ran.attempt
  const judged = ((): Pick<Judged, "verdict" | "ifApproved" | "keptFiles" | "failedBefore"> => {
    if (isOurs(outcome)) return { verdict: outcome }
    if (late !== undefined) return { verdict: { ...late, details: { ...late.details, ...unknownCommit(outcome) } } }
    const broken = withRemedy(ran, violation(core, ran, effects))
    if (broken !== undefined)
      return { verdict: { ...broken, details: { ...broken.details, ...unknownCommit(outcome) } } }
    if (!outcome.ok) {
      const blamed = blameDenial(outcome, ran.attempt.denied, ran)
      return keptAnyway(ran, blamed, effects) ?? failed(ran, blamed, effects)
    }
    const bad = badOutput(ran.attempt.exited)
    if (bad !== undefined) return { verdict: bad }
    const warned = effects
      .filter((effect) => !effect.declared)
      .map((effect) => `undeclared write accepted by the operator's \`undeclared_write: warn\`: ${effect.path}`)
    const fault = outputFault(ran, outcome.value)
    if (fault !== undefined) return failed(ran, blameDenial(fault, ran.attempt.denied, ran), effects)
    const good = {
      ...outcome,
      notes: [...ran.notes, ...outcome.notes, ...outputNotes(ran.attempt.exited), ...warned.slice(0, SHOWN)],
    } as const
    const asked = needsApproval(ran, effects)
    return asked === undefined ? { verdict: good } : { verdict: asked, ifApproved: good }
  })()
  return { ...ran, effects, ...judged, verdict: notInvited(ran, classified(ran.tool, judged.verdict)) }
}
