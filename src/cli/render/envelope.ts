/**
 * One call's end, for people: what changed, what was stopped, why it failed, where the proof is.
 *
 * Guarantees: every effect has its own line, deletions included; undeclared ones are marked; nothing a tool wrote can
 * steer the terminal. Pure: an envelope in, lines out.
 */
import type {
  ApprovalQuestion,
  Envelope,
  HeldApprovalDetail,
  ReportedDenial,
  ReportedEffect,
} from "../../host/types.ts"
import type { JsonValue } from "../../manifest/types.ts"
import type { EffectKind } from "../../sandbox/effects/types.ts"
import { type Colors } from "../terminal.ts"
import { typedAgain } from "../typed-again.ts"
import { changeLines } from "./changes.ts"
import { inline, nameText, safeJson, visible } from "../visible.ts"
import { says } from "../texts.ts"

const letters: Record<EffectKind, string> = {
  create: "A",
  mkdir: "A",
  modify: "M",
  chmod: "M",
  xattr: "M",
  touch: "M",
  delete: "D",
  rmdir: "D",
  symlink: "L",
  hardlink: "L",
  rename: "R",
  special: "!",
}

const octal = (mode: number | undefined): string =>
  mode === undefined ? "?" : (mode & 0o7777).toString(8).padStart(4, "0")

const RUNS_OR_OTHERS_WRITE = 0o133
/** A mode that a person should know of before saying yes: another one than before, a program, open to others' writing. */
const modeText = ({ kind, mode }: ReportedEffect): string => {
  if (mode?.before !== undefined && mode.after !== undefined) return `mode ${octal(mode.before)} → ${octal(mode.after)}`
  const telling = kind === "mkdir" ? RUNS_OR_OTHERS_WRITE & ~0o111 : RUNS_OR_OTHERS_WRITE
  return mode?.after !== undefined && (mode.after & telling) !== 0 ? `mode ${octal(mode.after)}` : ""
}

const whatOf = (effect: ReportedEffect): string => {
  switch (effect.kind) {
    case "rename":
      return effect.from === undefined ? "rename" : `from ${nameText(effect.from)}`
    case "hardlink":
      return effect.from === undefined ? "hardlink" : `the same file as ${nameText(effect.from)}`
    case "symlink":
      return effect.target === undefined ? "symlink" : `link to ${nameText(effect.target)}`
    case "mkdir":
    case "rmdir":
      return "folder"
    case "create":
    case "modify":
    case "delete":
      return effect.size === undefined ? "" : `${effect.size} bytes`
    case "chmod":
      return ""
    default:
      return effect.kind
  }
}

const detailOf = (effect: ReportedEffect): string => {
  const details = [whatOf(effect), modeText(effect)].filter((text) => text !== "")
  return details.length === 0 ? "" : ` (${details.join(", ")})`
}

const effectLine = (effect: ReportedEffect, paint: Colors): string => {
  const letter = letters[effect.kind]
  const colour = letter === "A" ? paint.green : letter === "D" ? paint.red : paint.yellow
  const mark =
    effect.refused !== undefined
      ? paint.red(`refused: ${inline(effect.refused)}`)
      : effect.declared
        ? paint.dim("declared")
        : paint.red("undeclared")
  const end = effect.committed ? "" : paint.dim(", not committed")
  return `  ${colour(letter)} ${nameText(effect.path)}${paint.dim(detailOf(effect))}  ${mark}${end}`
}

const denialLines = (denial: ReportedDenial, paint: Colors): string[] => {
  const times = denial.count > 1 ? ` ×${denial.count}` : ""
  return [
    `  ${paint.red("✗")} ${denial.layer} ${nameText(denial.target)}${times}  ${paint.dim(inline(denial.reason))}`,
    `    ${inline(denial.message)}`,
    `    ${paint.cyan("hint")} ${inline(denial.hint)}`,
  ]
}

/** What the tool said on the way. */
const saidLines = (stderr: unknown, paint: Colors): string[] =>
  typeof stderr === "string" && stderr.trim() !== ""
    ? visible(stderr.trimEnd())
        .split("\n")
        .map((line) => paint.dim(`  | ${line}`))
    : []

/** Shown already, where it is there. */
const SHOWN = ["stderr", "message"]

/** Whatever else of the details the hint tells to read: a person has nothing but this. */
const namedLines = ({ hint, details }: Extract<Envelope, { ok: false }>["error"], paint: Colors): string[] =>
  [...new Set([...hint.matchAll(/`details\.([a-z_]+)`/g)].map(([, name = ""]) => name))]
    .filter((name) => !SHOWN.includes(name) && Object.hasOwn(details, name))
    .flatMap((name) => {
      const value = details[name]
      return saidLines(typeof value === "string" ? value : safeJson(value, 2), paint)
    })

const errorLines = (envelope: Extract<Envelope, { ok: false }>, paint: Colors): string[] => {
  const { error } = envelope
  return [
    `${paint.red(paint.bold(error.code))}  ${inline(error.message)}`,
    ...saidLines(error.details["stderr"], paint),
    // What an exception or a service said; hints refer to it.
    ...(error.details["message"] === error.message ? [] : saidLines(error.details["message"], paint)),
    ...namedLines(error, paint),
    ...(error.hint === "" ? [] : [`${paint.cyan("hint")}  ${inline(error.hint)}`]),
  ]
}

const section = (title: string, lines: readonly string[], paint: Colors): string[] =>
  lines.length === 0 ? [] : [paint.bold(title), ...lines]

const driverText = ({ driver }: Envelope): string => (driver === undefined ? "" : ` · driver ${driver}`)

/** What a person is asked to approve: the changes one by one where there are some, else what the call may do. */
export const questionLines = (question: ApprovalQuestion, paint: Colors): string[] => [
  `${paint.bold(inline(question.tool))}${question.driver === undefined ? "" : ` by ${inline(question.driver)}`}: ${inline(question.message)}`,
  ...question.effects.map((effect) => effectLine({ ...effect, committed: true }, paint)),
  ...changeLines(question.changes, paint),
  ...(question.about === "call" ? question.mutates.map((scope) => `  ${inline(scope)}`) : []),
  ...section(
    "denied",
    question.denied.flatMap((denial) => denialLines(denial, paint)),
    paint,
  ),
]

const jsonLines = (name: string, value: unknown): string[] => [
  `${name}:`,
  ...JSON.stringify(value ?? {}, undefined, 2)
    .split("\n")
    .map((line) => `  ${inline(line)}`),
]

/** A call that was not run: what a person says yes to. */
const requestLines = ({ about, message, input, context }: HeldApprovalDetail): string[] =>
  about === "call"
    ? [
        inline(message ?? ""),
        ...jsonLines("input", input),
        ...(Object.keys(context ?? {}).length > 0 ? jsonLines("context", context) : []),
      ]
    : []

/** A call that waits: whose it is, until when, and what is asked about, every change in the order given. */
export const heldLines = (
  held: HeldApprovalDetail,
  manifests: readonly string[] | undefined,
  paint: Colors,
): string[] => [
  `${paint.bold(inline(held.tool))} by ${inline(held.driver)} for ${inline(held.user)} in ${nameText(held.workspace)}`,
  `${held.about === "call" ? "asked" : "held"} ${held.held}, until ${held.expires}`,
  ...requestLines(held),
  ...(held.intact
    ? section(
        "effects",
        held.effects.map((effect) => effectLine({ ...effect, committed: true }, paint)),
        paint,
      )
    : [paint.red(says.notIntact)]),
  ...changeLines(held.content, paint),
  ...section(
    "denied",
    held.denied.flatMap((denial) => denialLines(denial, paint)),
    paint,
  ),
  paint.dim(
    ["approve", "deny"]
      .map((answer) => inline(typedAgain(`caisson approvals ${answer} ${held.id}`, manifests)))
      .join(" · "),
  ),
]

/** Everything but the value. */
export const envelopeLines = (envelope: Envelope, paint: Colors, plan = false): string[] => [
  ...(envelope.ok ? saidLines(envelope.stderr, paint) : errorLines(envelope, paint)),
  ...(envelope.effects.length === 0 && envelope.ok
    ? [paint.dim(says.noEffects)]
    : section(
        "effects",
        envelope.effects.map((effect) => effectLine(effect, paint)),
        paint,
      )),
  ...section(
    "denied",
    envelope.denied.flatMap((denial) => denialLines(denial, paint)),
    paint,
  ),
  ...(envelope.access === undefined || envelope.access.lost === 0
    ? []
    : [`${paint.yellow("note")}  ${says.recordCut(envelope.access.lost)}`]),
  ...(envelope.notes ?? []).map((note) => `${paint.yellow("note")}  ${inline(note)}`),
  ...(plan && envelope.ok ? [paint.yellow(says.planned)] : []),
  paint.dim(`call ${envelope.call}${driverText(envelope)} · receipt ${envelope.receipt}`),
]

/** The value as a person wants it on a terminal: text as it is, anything else as indented JSON. */
export const valueText = (value: JsonValue): string =>
  typeof value === "string" ? visible(value.replace(/\n$/, "")) : safeJson(value, 2)
