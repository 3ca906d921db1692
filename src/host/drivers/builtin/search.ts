/**
 * `text.search`: lines that match, as `file:line:text`.
 *
 * Guarantees: patterns run in linear time; one whose program or line would still take long is refused or left out, and
 * other work has its turn between lines. Binary files (with a NUL) are left out.
 */
import { compilePattern } from "../../../manifest/schema/pattern.ts"
import type { JsonObject } from "../../../manifest/types.ts"
import { takingTurns } from "../../../sandbox/effects/breath.ts"
import type { Answer } from "../kind.ts"
import { type HostFunction, invalid, isOn, missing, textIn, unusable } from "./function.ts"
import { BUILTIN } from "./limits.ts"
import { walk, WalkEnded } from "./walk.ts"

interface Matcher {
  /** characters of the longest line that it takes */
  readonly longest: number
  matches(line: string): boolean
}

const matcherOf = (input: JsonObject, pattern: string): Answer<Matcher> => {
  const ignoreCase = isOn(input, "ignore_case")
  if (isOn(input, "literal")) {
    const wanted = ignoreCase ? pattern.toLowerCase() : pattern
    const matches = (line: string): boolean => (ignoreCase ? line.toLowerCase() : line).includes(wanted)
    return { ok: true, value: { longest: BUILTIN.lineSteps, matches } }
  }
  const made = compilePattern(ignoreCase ? `(?i)${pattern}` : pattern, { ambiguous: true })
  if (!made.ok) return invalid(made.message, made.fix)
  const { size, test } = made.pattern
  return { ok: true, value: { longest: Math.floor(BUILTIN.lineSteps / Math.max(1, size)), matches: test } }
}

const leftOut = (count: number, what: string): readonly string[] => (count === 0 ? [] : [`${count} ${what} left out`])

export const searchText: HostFunction = async (input, { files, outputBytes, signal }) => {
  const pattern = textIn(input, "pattern")
  if (pattern === undefined) return missing("pattern")
  const made = matcherOf(input, pattern)
  if (!made.ok) return made
  const { longest, matches } = made.value
  const options = { path: textIn(input, "path"), glob: textIn(input, "glob"), hidden: false, signal }
  const turns = takingTurns()
  const found: string[] = []
  let [bytes, longLines, largeFiles] = [0, 0, 0]
  try {
    for await (const { path, shown } of walk(files, options)) {
      const read = await files.read(path, BUILTIN.searchedBytes)
      if (!read.ok && read.fault === "too_large") largeFiles += 1
      if (!read.ok || read.value.includes(0)) continue
      const lines = read.value.toString("utf8").split("\n")
      if (lines.at(-1) === "") lines.pop()
      for (const [index, line] of lines.entries()) {
        await turns.take()
        if (signal.aborted) return unusable("ended", path)
        if (line.length > longest) longLines += 1
        else if (matches(line.endsWith("\r") ? line.slice(0, -1) : line)) {
          const text = `${shown}:${index + 1}:${line}\n`
          bytes += Buffer.byteLength(text)
          if (bytes > outputBytes) return unusable("too_large", options.path ?? ".")
          found.push(text)
        }
      }
    }
  } catch (error) {
    if (error instanceof WalkEnded) return error.failure
    throw error
  }
  const notes = [
    ...leftOut(largeFiles, `files of more than ${BUILTIN.searchedBytes} bytes were`),
    ...leftOut(longLines, `lines of more than ${longest} characters were`),
  ]
  return { ok: true, value: { value: found.join(""), notes } }
}
