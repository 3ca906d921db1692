/**
 * One verdict per request: to the caller's hook, to the log, to the aggregated denials and the counters.
 *
 * Guarantees: a verdict line carries host, port, rule and reason, never a path, query, header or byte of content.
 * `record` says whether the hook and the log took it; an allow that could not be recorded must not be acted on.
 */
import type { Authority } from "./authority.ts"
import { type ReasonClass, type ReasonCode, reasons } from "./reasons.ts"
import type { Protocol, Verdict } from "./types.ts"

export interface VerdictLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}

export interface Denial {
  readonly layer: "egress"
  readonly reason: string
  readonly target: string
  readonly count: number
}

export interface VerdictFacts {
  readonly protocol: Protocol
  readonly code: ReasonCode
  readonly target?: Authority
  /** for verdicts without an authority: a name the client asked for, printable */
  readonly host?: string
  readonly address?: string
  readonly rule?: string
  /** takes the place of the reason's own hint */
  readonly note?: string
}

export interface VerdictLog {
  record(facts: VerdictFacts): { readonly recorded: boolean; readonly verdict: Verdict }
  denials(): readonly Denial[]
  readonly totals: Readonly<Record<ReasonClass, number>>
}

export function createVerdictLog(options: {
  readonly onVerdict?: ((verdict: Verdict) => void) | undefined
  readonly logger?: VerdictLogger | undefined
  readonly denialRows: number
}): VerdictLog {
  const rows = new Map<string, { reason: string; target: string; count: number }>()
  const totals: Record<ReasonClass, number> = { allow: 0, deny: 0, malformed: 0, infrastructure: 0 }

  const count = (verdict: Verdict) => {
    if (verdict.decision !== "deny" && verdict.decision !== "malformed") return
    const named =
      verdict.host === undefined ? "-" : verdict.port === undefined ? verdict.host : `${verdict.host}:${verdict.port}`
    const known = rows.get(`${verdict.reason} ${named}`)
    const target = known !== undefined || rows.size < options.denialRows ? named : "…"
    const key = `${verdict.reason} ${target}`
    const row = rows.get(key) ?? { reason: verdict.reason, target, count: 0 }
    row.count += 1
    rows.set(key, row)
  }

  return {
    totals,
    record(facts) {
      const verdict = verdictOf(facts)
      totals[verdict.decision] += 1
      count(verdict)
      try {
        options.onVerdict?.(verdict)
        if (options.logger !== undefined) {
          const { decision, ...fields } = verdict
          options.logger[decision === "allow" ? "info" : "warn"]({ decision, ...fields }, "egress")
        }
        return { recorded: true, verdict }
      } catch {
        return { recorded: false, verdict }
      }
    },
    denials: () => [...rows.values()].map((row) => ({ layer: "egress" as const, ...row })),
  }
}

function verdictOf(facts: VerdictFacts): Verdict {
  const reason = reasons[facts.code]
  const verdict: { -readonly [Key in keyof Verdict]: Verdict[Key] } = {
    decision: reason.class,
    reason: facts.code,
    protocol: facts.protocol,
  }
  const host = facts.target?.hostText ?? facts.host
  const hint = facts.note ?? reason.hint
  if (host !== undefined) verdict.host = host
  if (facts.target !== undefined) verdict.port = facts.target.port
  if (facts.address !== undefined) verdict.address = facts.address
  if (facts.rule !== undefined) verdict.rule = facts.rule
  if (hint !== "") verdict.hint = hint
  return verdict
}
