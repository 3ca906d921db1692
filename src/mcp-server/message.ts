/** What a client sent, looked at before anything reads it. Pure: what is nested without end ends no walk of anybody's. */

/** Level by level, so that nothing of it is on this program's own stack. */
export const isDeeperThan = (message: unknown, most: number): boolean => {
  let level: readonly unknown[] = [message]
  for (let depth = 0; level.length > 0; depth += 1) {
    if (depth > most) return true
    const next: unknown[] = []
    for (const value of level)
      if (typeof value === "object" && value !== null) for (const each of Object.values(value)) next.push(each)
    level = next
  }
  return false
}

/** Messages whose words are kept as long as what they begin is open. */
const LASTING = new Set<unknown>(["initialize", "subscriptions/listen"])
export const isLasting = (message: unknown): boolean =>
  typeof message === "object" && message !== null && "method" in message && LASTING.has(message.method)
