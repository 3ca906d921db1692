/**
 * What became of the files that a contract exchanges with its tool (AIP-16).
 *
 * Guarantees: pure. Something that is no file in an output's place fails the call, and nothing is committed; an output that
 * is not there, or could not be written to its place, is told and fails nothing. Of a tool that itself says that it failed,
 * the outputs that it left are kept, and nothing else; only where they are declared and nobody has to be asked, and not
 * where the tool was stopped over them.
 */
import type { JsonObject } from "../../../manifest/types.ts"
import type { TakenOutput } from "../../../sandbox/backend.ts"
import { displayName, fromBuffer } from "../../../sandbox/effects/names.ts"
import type { Failure } from "../../failure.ts"
import type { ReportedEffect } from "../../types.ts"
import type { Ended, Ran } from "../steps.ts"
import { isOfTheTool } from "./denials.ts"

/** A path as effects spell it. */
const spelled = (path: string): string => displayName(fromBuffer(Buffer.from(path)))

const outputsOf = ({ exchanged }: Ended): readonly TakenOutput[] => exchanged?.outputs ?? []

/** Paths that the host itself wrote, for the tool. */
export const writtenOutputs = (exited: Ended): readonly string[] =>
  outputsOf(exited).flatMap(({ state, path }) => (state === "written" ? [spelled(path)] : []))

export const badOutput = (exited: Ended): Failure | undefined => {
  const bad = outputsOf(exited).find((output) => output.state === "refused")
  if (bad?.state !== "refused") return undefined
  return {
    ok: false,
    code: "output_invalid",
    message: `the tool left no plain file as its output \`${bad.name}\`: ${bad.why}; nothing was committed`,
    hint: "let the tool write a regular file there",
    details: { file: bad.name, path: bad.path },
  }
}

export const outputNotes = (exited: Ended): readonly string[] =>
  outputsOf(exited).flatMap((output) => {
    if (output.state === "absent") return [`the tool left no file as its output \`${output.name}\``]
    if (output.state === "failed")
      return [`the output \`${output.name}\` was not written to \`${output.path}\`: ${output.why}`]
    return []
  })

/** Folders that came with it, each made and nothing else; undefined where the tool did more to one of them. */
const foldersAbove = (path: string, at: ReadonlyMap<string, readonly ReportedEffect[]>): string[] | undefined => {
  const made: string[] = []
  for (let end = path.lastIndexOf("/"); end > 0; end = path.lastIndexOf("/", end - 1)) {
    const found = at.get(path.slice(0, end)) ?? []
    if (found.some(({ kind, declared }) => kind !== "mkdir" || !declared)) return undefined
    if (found.length > 0) made.push(path.slice(0, end))
  }
  return made
}

/** The paths to commit of a call that failed with this; undefined for none. */
export const keptOutputs = (
  { attempt: { exited }, plan, approval }: Ran,
  verdict: Failure,
  effects: readonly ReportedEffect[],
): readonly string[] | undefined => {
  if (plan || approval.onEffects !== "commit" || !isOfTheTool(verdict)) return undefined
  const at = Map.groupBy(effects, ({ path }) => path)
  const kept = writtenOutputs(exited).flatMap((path) => {
    const own = at.get(path) ?? []
    const folders = foldersAbove(path, at)
    return folders === undefined || own.length === 0 || own.some(({ declared }) => !declared) ? [] : [path, ...folders]
  })
  return kept.length === 0 ? undefined : [...new Set(kept)]
}

/** What the receipt says of each file: where it came from or went, and its digest. */
export const fileRows = ({ exchanged }: Ended): readonly JsonObject[] =>
  exchanged === undefined
    ? []
    : [
        ...exchanged.inputs.map((input) => ({ file: "input", ...input })),
        ...exchanged.outputs.map((output) => ({ file: "output", ...output })),
      ]
