/**
 * Does a pattern repeat something that can match the same text in two ways, as `(a+)+` or `(a|aa)*` do?
 *
 * Such a pattern takes exponential time in engines that backtrack. Ours does not, but a contract's schema is read by
 * others too, and there is always a plain spelling. Guarantees: linear in the pattern; reports only groups whose
 * repeated body is itself one unbounded repetition, or alternatives of which one begins with another. Pure.
 */

interface Group {
  readonly start: number
  readonly alternatives: string[]
  from: number
}

const unbounded = /^(?:[*+]|\{\d+,\})/
/** One atom and an unbounded repetition of it, nothing else: `a+`, `\w*`, `[a-z]{2,}`, `.*?`. */
const soleRepetition = /^(?:\\(?:[pP]\{[^}]*\}|.)|\[(?:\\.|[^\]\\])*\]|[^\\[\](){}|*+?^$])(?:[*+]|\{\d+,\})\??$/
const withoutPrefix = (body: string): string => body.replace(/^\?(?::|P?<[^>]*>)/, "")

const isAmbiguous = (alternatives: readonly string[]): boolean =>
  alternatives.some((one, index) => {
    const body = withoutPrefix(one)
    if (soleRepetition.test(body)) return true
    return body !== "" && alternatives.some((other, at) => at !== index && withoutPrefix(other).startsWith(body))
  })

/** The first such group, as written with its repetition, or undefined. */
export const ambiguousRepetition = (source: string): string | undefined => {
  const open: Group[] = []
  for (let at = 0; at < source.length; at += 1) {
    const char = source[at]
    if (char === "\\") at += 1
    else if (char === "[") {
      at += 1
      while (at < source.length && source[at] !== "]") at += source[at] === "\\" ? 2 : 1
    } else if (char === "(") open.push({ start: at, alternatives: [], from: at + 1 })
    else if (char === "|") {
      const group = open.at(-1)
      if (group !== undefined) {
        group.alternatives.push(source.slice(group.from, at))
        group.from = at + 1
      }
    } else if (char === ")") {
      const group = open.pop()
      if (group === undefined) continue
      const repeated = unbounded.exec(source.slice(at + 1))?.[0]
      if (repeated !== undefined && isAmbiguous([...group.alternatives, source.slice(group.from, at)]))
        return source.slice(group.start, at + 1 + repeated.length)
    }
  }
  return undefined
}
