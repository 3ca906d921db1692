/** What came of a conformance run, as reports are made from it. */
import type { ConformCase, ConformResult } from "../../../host/conform/types.ts"

export interface Tried {
  readonly each: ConformCase
  readonly result: ConformResult
}

interface Counts {
  readonly passed: number
  readonly failed: number
  readonly blocked: number
  readonly skipped: number
}

export const countsOf = (tried: readonly Tried[]): Counts => {
  const count = (outcome: ConformResult["outcome"]): number =>
    tried.filter(({ result }) => result.outcome === outcome).length
  return { passed: count("passed"), failed: count("failed"), blocked: count("blocked"), skipped: count("skipped") }
}

export const summaryOf = ({ passed, failed, blocked, skipped }: Counts): string =>
  [
    `${passed} passed`,
    `${failed} failed`,
    ...(blocked > 0 ? [`${blocked} could not be tried`] : []),
    ...(skipped > 0 ? [`${skipped} skipped`] : []),
  ].join(", ")

const evidenceOf = ({ envelope, writeSet }: ConformResult): object =>
  envelope === undefined
    ? {}
    : {
        call: envelope.call,
        receipt: envelope.receipt,
        ...(envelope.ok ? {} : { error: envelope.error }),
        effects: envelope.effects,
        denied: envelope.denied,
        ...(writeSet === undefined ? {} : { writeSet }),
      }

export const reportJson = (tried: readonly Tried[]): readonly object[] =>
  tried.map(({ each, result }) => ({
    name: each.name,
    tool: each.tool,
    driver: each.driver,
    file: each.file,
    ...(each.line === undefined ? {} : { line: each.line }),
    outcome: result.outcome,
    why: result.why,
    ...(result.code === undefined ? {} : { code: result.code }),
    ms: result.ms,
    ...evidenceOf(result),
  }))
