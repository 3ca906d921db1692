/**
 * The write set of a run, each effect marked as declared or not, by the contract and the driver together. What the host
 * itself reads or runs is nobody's to declare.
 *
 * Guarantees: takes turns with other calls, and gives up after `judgeMs`: then no effect counts as declared.
 */
import { exactGlob } from "../../../manifest/values/globs.ts"
import { judgeInTurns } from "../../../sandbox/effects/judging/judge.ts"
import type { Failure } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { ReportedEffect } from "../../types.ts"
import type { Ran } from "../steps.ts"
import type { KeptPath } from "../admission/workspace.ts"
import { writtenOutputs } from "./files.ts"

/** Names are compared without their case: a folder may be blind to it. */
export const keptReason = (kept: readonly KeptPath[], path: string): string | undefined => {
  const folded = path.toLowerCase()
  return kept.find(({ path: own }) => {
    const at = own.toLowerCase()
    return at === "" || folded === at || folded.startsWith(`${at}/`)
  })?.why
}

interface JudgedEffects {
  readonly effects: readonly ReportedEffect[]
  /** why the judging was given up */
  readonly late?: Failure
}

class TooSlow extends Error {}

export const judgeEffects = async (
  { tool, profile, kept, attempt: { exited } }: Ran,
  allowedMs: number = hostLimits.judgeMs.value,
): Promise<JudgedEffects> => {
  const mutates = tool.mutates.filter((scope) => scope.class === "workspace").map((scope) => scope.scope)
  // What the contract gives out as files the host wrote, wherever the driver itself may write.
  const fsWrite = [...profile.write, ...writtenOutputs(exited).map(exactGlob)]
  const policy = { mutates, fsWrite, fsDeny: profile.view.deny }
  try {
    const { effects } = await judgeInTurns(policy, exited.writes, allowedMs, () => new TooSlow())
    const reported = effects.map((effect) => {
      const refused =
        keptReason(kept, effect.path) ?? (effect.from === undefined ? undefined : keptReason(kept, effect.from))
      return { ...effect, ...(refused === undefined ? {} : { declared: false, refused }), committed: false }
    })
    return { effects: reported }
  } catch (error) {
    if (!(error instanceof TooSlow)) throw error
    return {
      effects: exited.writes.effects.map((effect) => ({ ...effect, declared: false, committed: false })),
      late: {
        ok: false,
        code: "limit_exceeded",
        message: `what the tool changed could not be judged within ${allowedMs} ms; nothing was committed`,
        details: { limit: "judging" },
      },
    }
  }
}
