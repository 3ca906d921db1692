/**
 * The calls that a client may come back to: those that wait for an answer, and those that go on as tasks.
 *
 * Guarantees: bounded, as a whole and for one caller; each is found by who began it and by nobody else, and none is found
 * that is over its time. What they answered is bounded in size as well: the oldest is left to the record of calls. An end of
 * the server cancels those that still run.
 */
import { mcpLimits } from "../limits.ts"
import type { Run } from "./run.ts"

interface Kept {
  readonly run: Run
  readonly until: number
  /** of what it answered; 0 while it runs, and once that was put aside */
  chars: number
}

export class Runs implements Disposable {
  readonly #kept = new Map<string, Kept>()
  /** As they ended, so that the oldest come first. */
  readonly #ended = new Set<Kept>()
  #tidy(now: number): void {
    for (const [id, { until, run }] of this.#kept)
      if (until < now) {
        run.cancel()
        this.#forget(id)
      }
  }
  /** False: there is no room for it. */
  keep(run: Run, keepMs: number): boolean {
    if (this.#kept.has(run.id)) return true
    const now = performance.now()
    this.#tidy(now)
    const all = [...this.#kept.values()].map((kept) => kept.run)
    const own = all.filter(({ whose }) => whose === run.whose)
    const open = (runs: readonly Run[]): number => runs.filter(({ hasEnded }) => !hasEnded).length
    if (all.length >= mcpLimits.kept.value || own.length >= mcpLimits.keptOfOne.value) return false
    if (open(all) >= mcpLimits.running.value || open(own) >= mcpLimits.runningOfOne.value) return false
    const kept: Kept = { run, until: now + keepMs, chars: 0 }
    this.#kept.set(run.id, kept)
    run.onEnd = () => this.#weigh(kept)
    return true
  }
  #weigh(kept: Kept): void {
    if (!this.#kept.has(kept.run.id)) return
    kept.chars = JSON.stringify(kept.run.envelope ?? null).length
    this.#ended.add(kept)
    this.#putAside(mcpLimits.keptCharsOfOne.value, ({ run }) => run.whose === kept.run.whose)
    this.#putAside(mcpLimits.keptChars.value, () => true)
  }
  #putAside(most: number, fits: (kept: Kept) => boolean): void {
    const those = [...this.#ended].filter(fits)
    let chars = those.reduce((sum, kept) => sum + kept.chars, 0)
    for (const kept of those) {
      if (chars <= most) return
      chars -= kept.chars
      kept.chars = 0
      kept.run.putAside()
      this.#ended.delete(kept)
    }
  }
  find(id: string, whose: string): Run | undefined {
    const found = this.#kept.get(id)
    return found !== undefined && found.run.whose === whose && found.until >= performance.now() ? found.run : undefined
  }
  #forget(id: string): void {
    const kept = this.#kept.get(id)
    this.#kept.delete(id)
    if (kept !== undefined) this.#ended.delete(kept)
  }
  drop(run: Run): void {
    this.#forget(run.id)
  }
  [Symbol.dispose](): void {
    for (const { run } of this.#kept.values()) run.cancel()
    this.#kept.clear()
    this.#ended.clear()
  }
}
