/**
 * Command strings of manifests (`version_check.cmd`, …) → words, without a shell (C-32).
 *
 * Guarantees: quotes, backslashes, `$NAME` and `${NAME}` from the given environment and a leading `~` mean what they
 * mean in sh; a value put in for a variable is never split or read again. Anything else that sh would act on (pipes,
 * lists, redirections, globs, substitutions, assignments, comments) is flagged, never passed on as text by accident.
 * Does not: run anything.
 */

type Words =
  | { readonly ok: true; readonly words: readonly string[] }
  /** the text only means something to a shell; `why` says what stands in the way */
  | { readonly ok: false; readonly needsShell: true; readonly why: string }
  | { readonly ok: false; readonly needsShell: false; readonly problem: string }

const operators = new Set("|&;<>()`\n")
const globs = new Set("*?[{")
const variable = /\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})/y

class NeedsShell extends Error {}
class Malformed extends Error {}

interface Scan {
  readonly text: string
  readonly env: Readonly<Record<string, string>>
  at: number
}

const expand = (scan: Scan): string => {
  variable.lastIndex = scan.at
  const found = variable.exec(scan.text)
  if (found === null) {
    const next = scan.text.charAt(scan.at + 1)
    if (next === "" || /[\s"]/.test(next)) {
      scan.at++
      return "$"
    }
    throw new NeedsShell(`\`$${next}\` is more than a variable's name`)
  }
  scan.at = variable.lastIndex
  const name = found[1] ?? found[2] ?? ""
  return Object.hasOwn(scan.env, name) ? (scan.env[name] ?? "") : ""
}

const singleQuoted = (scan: Scan): string => {
  const end = scan.text.indexOf("'", scan.at + 1)
  if (end === -1) throw new Malformed("a single quote is not closed")
  const text = scan.text.slice(scan.at + 1, end)
  scan.at = end + 1
  return text
}

const doubleQuoted = (scan: Scan): string => {
  let text = ""
  scan.at++
  while (scan.at < scan.text.length) {
    const char = scan.text.charAt(scan.at)
    if (char === '"') {
      scan.at++
      return text
    }
    if (char === "`") throw new NeedsShell("a command substitution")
    if (char === "$") text += expand(scan)
    else if (char === "\\") {
      const next = scan.text.charAt(scan.at + 1)
      text += next === "\n" ? "" : '$`"\\'.includes(next) && next !== "" ? next : `\\${next}`
      scan.at += 2
    } else {
      text += char
      scan.at++
    }
  }
  throw new Malformed("a double quote is not closed")
}

const tilde = (scan: Scan): string => {
  const next = scan.text.charAt(scan.at + 1)
  if (next !== "" && next !== "/" && !/\s/.test(next)) throw new NeedsShell("another user's `~`")
  if (!Object.hasOwn(scan.env, "HOME")) throw new NeedsShell("`~` without a HOME")
  scan.at++
  return scan.env["HOME"] ?? ""
}

/** One word from a place that is not blank; undefined when unquoted variables left nothing of it, as in sh. */
const word = (scan: Scan, first: boolean): string | undefined => {
  const start = scan.at
  let text = scan.text.charAt(start) === "~" ? tilde(scan) : ""
  let kept = scan.at > start
  while (scan.at < scan.text.length) {
    const char = scan.text.charAt(scan.at)
    if (char === "\n" || operators.has(char)) throw new NeedsShell(char === "\n" ? "several lines" : `\`${char}\``)
    if (/\s/.test(char)) break
    if (globs.has(char)) throw new NeedsShell(`\`${char}\` outside quotes`)
    if (char === "#" && scan.at === start) throw new NeedsShell("a comment")
    if (char === "=" && first && /^[A-Za-z_]\w*$/.test(scan.text.slice(start, scan.at)))
      throw new NeedsShell("an assignment before the command")
    if (char === "'" || char === '"') {
      text += char === "'" ? singleQuoted(scan) : doubleQuoted(scan)
      kept = true
    } else if (char === "$") text += expand(scan)
    else if (char === "\\") {
      if (scan.at + 1 >= scan.text.length) throw new Malformed("a backslash stands at the end")
      text += scan.text.charAt(scan.at + 1)
      scan.at += 2
      kept = true
    } else {
      text += char
      scan.at++
    }
  }
  return text === "" && !kept ? undefined : text
}

export const splitWords = (text: string, env: Readonly<Record<string, string>>): Words => {
  const scan: Scan = { text: text.trim(), env, at: 0 }
  const words: string[] = []
  if (text.includes("\0")) return { ok: false, needsShell: false, problem: "the command contains a NUL character" }
  try {
    while (scan.at < scan.text.length) {
      if (/[^\S\n]/.test(scan.text.charAt(scan.at))) {
        scan.at++
        continue
      }
      const found = word(scan, words.length === 0)
      if (found !== undefined) words.push(found)
    }
  } catch (error) {
    if (error instanceof NeedsShell) return { ok: false, needsShell: true, why: error.message }
    if (error instanceof Malformed) return { ok: false, needsShell: false, problem: error.message }
    throw error
  }
  return words.length === 0 ? { ok: false, needsShell: false, problem: "the command is empty" } : { ok: true, words }
}
