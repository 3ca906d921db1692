/** An envelope's ways on, for whoever typed the command: flags of `run`, not fields of a manifest. Pure. */
import { exactGlob } from "../../manifest/values/globs.ts"
import { LEAVE_IT_ALONE } from "../call/judge.ts"
import type { Envelope, ReportedDenial, RunOptions } from "../types.ts"

const quoted = (text: string): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`)
const SHOWN = 3

const flagFor = ({ layer, reason, target }: ReportedDenial): string | undefined => {
  if (layer === "egress" && ["host_not_allowed", "port_not_allowed"].includes(reason) && !target.includes(" "))
    return `if it may reach that host, run it again with --allow ${quoted(target)}`
  if (layer === "exec" && reason === "not_listed" && !target.endsWith("/*"))
    return `if it may start that program, run it again with --exec ${quoted(target.split("/").at(-1) ?? target)}`
  if (layer === "fs" && reason === "hidden")
    return `if it may see that, run it again with --read ${quoted(globOf(target))}`
  if (layer === "limit" && reason === "wall") return "let it do less, or give it longer: --timeout SECONDS"
  return undefined
}

const denialForRun = (denial: ReportedDenial): ReportedDenial => {
  const hint = flagFor(denial)
  return hint === undefined ? denial : { ...denial, hint }
}

type Ask = NonNullable<RunOptions["approve"]>
export const inRunWords =
  (ask: Ask): Ask =>
  (question) =>
    ask({ ...question, denied: question.denied.map(denialForRun) })

/** That file alone, whatever a program called it: a `*` in a name is that character. */
const globOf = (path: string): string =>
  exactGlob(path)
    .slice(1)
    .replace(/[\u0000-\u001f\u007f~$]/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`)

const writeHint = (paths: unknown): string | undefined => {
  if (!Array.isArray(paths) || paths.length === 0) return undefined
  const flags = paths.slice(0, SHOWN).map((path) => `--write ${quoted(globOf(String(path)))}`)
  return `if it may write ${paths.length > SHOWN ? "those" : "that"}, run it again with ${flags.join(" ")}${paths.length > SHOWN ? " …" : ""}`
}

export const forRun = (envelope: Envelope): Envelope => {
  const denied = envelope.denied.map(denialForRun)
  if (envelope.ok) return { ...envelope, denied }
  const { error } = envelope
  const { details } = error
  const cause = details["probable_cause"] as { layer?: unknown; reason?: unknown; target?: unknown } | undefined
  const told = denied.find(
    ({ layer, reason, target }) => layer === cause?.layer && reason === cause?.reason && target === cause?.target,
  )
  const hint =
    error.code !== "undeclared_write"
      ? told?.hint
      : error.hint === LEAVE_IT_ALONE
        ? undefined
        : writeHint(details["paths"])
  return { ...envelope, denied, error: { ...error, ...(hint === undefined ? {} : { hint }) } }
}
