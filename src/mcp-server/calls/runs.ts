/**
 * The calls that a client may come back to: those that wait for an answer, and those that go on as tasks.
 *
 * Guarantees: bounded, as a whole and for one caller; each is found by who began it and by nobody else, and none is found
 * that is over its time. An end of the server cancels those that still run.
 */
import { mcpLimits } from "../limits.ts"
import type { Run } from "./run.ts"

interface Kept {
  readonly run: Run
  readonly until: number
}

export class Runs implements Disposable {
  readonly #kept = new Map<string, Kept>()
  #tidy(now: number): void {
    for (const [id, { until, run }] of this.#kept)
      if (until < now) {
        run.cancel()
        this.#kept.delete(id)
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
    this.#kept.set(run.id, { run, until: now + keepMs })
    return true
  }
  find(id: string, whose: string): Run | undefined {
    const found = this.#kept.get(id)
    return found !== undefined && found.run.whose === whose && found.until >= performance.now() ? found.run : undefined
  }
  drop(run: Run): void {
    this.#kept.delete(run.id)
  }
  [Symbol.dispose](): void {
    for (const { run } of this.#kept.values()) run.cancel()
    this.#kept.clear()
  }
}
