/**
 * The write set of a run, each effect marked as declared or not, by the contract and the driver together. What the host
 * itself reads or runs is nobody's to declare. Pure.
 */
import { judgeWrites } from "../../sandbox/effects/judge.ts"
import type { ReportedEffect } from "../types.ts"
import type { Ran } from "./steps.ts"
import type { KeptPath } from "./workspace.ts"

/** Names are compared without their case: a folder may be blind to it. */
const keptReason = (kept: readonly KeptPath[], path: string): string | undefined => {
  const folded = path.toLowerCase()
  return kept.find(({ path: own }) => {
    const at = own.toLowerCase()
    return at === "" || folded === at || folded.startsWith(`${at}/`)
  })?.why
}

export const judgeEffects = ({ tool, profile, kept, attempt: { exited } }: Ran): readonly ReportedEffect[] => {
  const mutates = tool.mutates.filter((scope) => scope.class === "workspace").map((scope) => scope.scope)
  const { effects } = judgeWrites({ mutates, fsWrite: profile.write, fsDeny: profile.view.deny }, exited.writes)
  return effects.map((effect) => {
    const refused =
      keptReason(kept, effect.path) ?? (effect.from === undefined ? undefined : keptReason(kept, effect.from))
    return { ...effect, ...(refused === undefined ? {} : { declared: false, refused }), committed: false }
  })
}
