/**
 * One verdict per request: to the caller's hook, to the log, to the aggregated denials and the counters.
 *
 * Guarantees: a verdict line carries host, aliases, port, rule and reason, never a path, query, header or byte of
 * content.
 * `record` says whether the hook and the log took it; an allow that could not be recorded must not be acted on. The
 * first that either does not take, refusals included, breaks the log for good: a sink that comes back has a gap that
 * nobody would see, so nothing is recorded, and nothing may pass, from then on. Until then the hook sees every verdict. The log gets a line for every allow; refusals, which cost a sandbox nothing, get lines of
 * their own up to a number a second, and beyond it one line for each reason, with the count.
 */
import type { Authority } from "./authority.ts"
import { explainDenial } from "./explain.ts"
import { type ReasonClass, type ReasonCode, reasons } from "./reasons.ts"
import type { Protocol, Verdict } from "../types.ts"
import { unicodeOf } from "./unicode-name.ts"

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
  readonly aliases?: readonly string[] | undefined
  readonly rule?: string
  /** on an allow: what a rule set to `report` would have refused it with */
  readonly report?: ReasonCode | undefined
}

export interface VerdictLog {
  record(facts: VerdictFacts): { readonly recorded: boolean; readonly verdict: Verdict }
  denials(): readonly Denial[]
  /** What was allowed and could not be carried, which is nobody's violation. */
  failures(): readonly Denial[]
  readonly totals: Readonly<Record<ReasonClass, number>>
  /** something could not be recorded: nothing may pass any more */
  readonly broken: boolean
  /** Writes what was counted and not written yet. */
  flush(): void
}

export function createVerdictLog(options: {
  readonly onVerdict?: ((verdict: Verdict) => void) | undefined
  readonly logger?: VerdictLogger | undefined
  readonly denialRows: number
  readonly refusalLines: number
  /** told once, when something could not be recorded */
  readonly onBroken?: () => void
}): VerdictLog {
  let broken = false
  const fail = (): void => {
    if (broken) return
    broken = true
    options.onBroken?.()
  }
  const lines = createRefusalLines(options.logger, options.refusalLines, fail)
  const denied = new Map<string, Row>()
  const failed = new Map<string, Row>()
  const totals: Record<ReasonClass, number> = { allow: 0, deny: 0, malformed: 0, infrastructure: 0 }

  const count = (verdict: Verdict) => {
    if (verdict.decision === "allow") return
    const rows = verdict.decision === "infrastructure" ? failed : denied
    const named =
      verdict.host === undefined ? "-" : verdict.port === undefined ? verdict.host : `${verdict.host}:${verdict.port}`
    const known = rows.get(`${verdict.reason} ${named}`)
    const target = known !== undefined || rows.size < options.denialRows ? named : "…"
    const key = `${verdict.reason} ${target}`
    const row = rows.get(key) ?? { reason: verdict.reason, target, count: 0 }
    row.count += 1
    rows.set(key, row)
  }

  const tell = (verdict: Verdict): boolean => {
    if (broken) return false
    try {
      const said: unknown = options.onVerdict?.(verdict)
      // A hook that answers later cannot hold the request up; a no that comes later holds for what comes after it.
      if (said instanceof Promise) said.catch(fail)
      if (verdict.decision === "allow") options.logger?.info({ ...verdict }, "egress")
      else lines.write(verdict)
    } catch {
      fail()
    }
    return !broken
  }

  return {
    totals,
    get broken() {
      return broken
    },
    record(facts) {
      const verdict = verdictOf(facts)
      const recorded = tell(verdict)
      if (recorded || verdict.decision !== "allow") {
        totals[verdict.decision] += 1
        count(verdict)
      }
      return { recorded, verdict }
    },
    flush: () => lines.flush(),
    denials: () => listed(denied),
    failures: () => listed(failed),
  }
}

interface Row {
  readonly reason: string
  readonly target: string
  count: number
}
const listed = (rows: ReadonlyMap<string, Row>): readonly Denial[] =>
  [...rows.values()].map((row) => ({ layer: "egress" as const, ...row }))

/** Refusals in the log: one by one up to `most` in a second, then counted by reason until the second is over. */
function createRefusalLines(logger: VerdictLogger | undefined, most: number, fail: () => void) {
  const counted = new Map<string, { readonly decision: string; readonly reason: string; count: number }>()
  let written = 0
  let since = Number.NEGATIVE_INFINITY
  let timer: NodeJS.Timeout | undefined
  const flush = (): void => {
    clearTimeout(timer)
    timer = undefined
    const rows = [...counted.values()]
    counted.clear()
    try {
      for (const row of rows) logger?.warn(row, "egress refusals, counted")
    } catch {
      fail()
    }
  }
  return {
    flush,
    write(verdict: Verdict): void {
      if (logger === undefined) return
      const now = performance.now()
      if (now - since >= 1_000) {
        flush()
        since = now
        written = 0
      }
      if (written < most) {
        written += 1
        return logger.warn({ ...verdict }, "egress")
      }
      const { decision, reason } = verdict
      const row = counted.get(reason) ?? { decision, reason, count: 0 }
      row.count += 1
      counted.set(reason, row)
      timer ??= setTimeout(flush, 1_000).unref()
    },
  }
}

/** The fix, with the target's name in it where there is one. */
function hintFor({ code, target }: VerdictFacts, hint: string): string {
  return target === undefined || hint === "" ? hint : explainDenial({ reason: code, target: target.text }).hint
}

function verdictOf(facts: VerdictFacts): Verdict {
  const reason = reasons[facts.code]
  const verdict: { -readonly [Key in keyof Verdict]: Verdict[Key] } = {
    decision: reason.class,
    reason: facts.code,
    protocol: facts.protocol,
  }
  const host = facts.target?.hostText ?? facts.host
  const hint = facts.report === undefined ? hintFor(facts, reason.hint) : reasons[facts.report].text
  if (host !== undefined) verdict.host = host
  const read = host === undefined ? undefined : unicodeOf(host)
  if (read !== undefined) {
    verdict.unicode = read.text
    verdict.scripts = read.scripts
  }
  if (facts.target !== undefined) verdict.port = facts.target.port
  if (facts.address !== undefined) verdict.address = facts.address
  if (facts.aliases !== undefined && facts.aliases.length > 0) verdict.aliases = facts.aliases
  if (facts.rule !== undefined) verdict.rule = facts.rule
  if (hint !== "") verdict.hint = hint
  if (facts.report !== undefined) verdict.report = facts.report
  return verdict
}
