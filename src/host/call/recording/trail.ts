/**
 * How far a call came, as it goes: what its receipt is written of, wherever it ends.
 *
 * Guarantees: what broke is a failure of the host's own, in words without a stack; where something of the call had been
 * started, or its effects may stand, it says so and invites nobody to run it again.
 */
import type { JsonObject } from "../../../manifest/types.ts"
import type { Denial } from "../../../sandbox/backend.ts"
import type { AccessRecord } from "../../access-record/types.ts"
import type { Failure } from "../../failure.ts"
import { machineTrouble } from "../../machine-trouble.ts"
import type { ReportedEffect } from "../../types.ts"
import { perhapsDone } from "../judging/second-run.ts"
import type { ReceiptRows } from "../receipt.ts"
import type { Progress, Requested } from "../steps.ts"

/** What is known of the call so far, for the receipt. */
export class Trail {
  progress: Progress
  effects: readonly ReportedEffect[] = []
  /** what of the effects goes into the receipt, once that is known */
  rows: ReceiptRows | undefined
  /** digests of what runs, under way since it was sealed */
  ran: Promise<JsonObject> | undefined
  denied: readonly Denial[] = []
  access: AccessRecord | undefined
  backend: string | undefined
  held: JsonObject | undefined
  /** something of it ran, or was asked of a service, whatever became of that */
  started = false
  /** its effects are being committed, or were, and nobody was told yet */
  committing = false
  readonly timings: Record<string, number> = {}
  #at = performance.now()
  constructor(requested: Requested) {
    this.progress = requested
  }
  mark(step: string, progress?: Progress): void {
    const now = performance.now()
    this.timings[step] = now - this.#at
    this.#at = now
    if (progress !== undefined) this.progress = progress
  }
}

/** Wherever it broke: what had been started may have changed what no layer holds, and a commit may stand. */
export const broken = (error: unknown, { started, committing, progress }: Trail): Failure => {
  const failure = thrown(error)
  if (committing) return { ...failure, retryable: false, details: { ...failure.details, commit: "unknown" } }
  return started && "command" in progress ? perhapsDone(progress, failure) : failure
}

const thrown = (error: unknown): Failure => {
  const trouble = machineTrouble(error)
  const said = error instanceof Error ? error.message : String(error)
  return {
    ok: false,
    code: "internal",
    message: `the host itself failed: ${trouble?.message ?? said}`,
    ...(trouble === undefined ? {} : { hint: `${trouble.fix}, then run it again` }),
    details: error instanceof Error ? { error: error.name } : {},
  }
}
