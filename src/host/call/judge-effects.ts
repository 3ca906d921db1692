/** The write set of a run, each effect marked as declared or not, by the contract and the driver together. Pure. */
import { judgeWrites } from "../../sandbox/effects/judge.ts"
import type { ReportedEffect } from "../types.ts"
import type { Ran } from "./steps.ts"

export const judgeEffects = ({ tool, profile, attempt: { exited } }: Ran): readonly ReportedEffect[] => {
  const mutates = tool.mutates.filter((scope) => scope.class === "workspace").map((scope) => scope.scope)
  const { effects } = judgeWrites({ mutates, fsWrite: profile.write, fsDeny: profile.view.deny }, exited.writes)
  return effects.map((effect) => ({ ...effect, committed: false }))
}
