/**
 * Arguments as they stand in a manifest: no shell syntax where no shell runs, no secrets, no NUL.
 */
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { programTexts } from "../templates/program-text.ts"

const SHELL_OPERATOR = /^(?:\|\|?|&&?|;|\d?>>?(?:&\d)?|<<?<?|\d>&\d)$/
const SHELL_TEXT = /\$\(/
/** innocent in a filter or a query, an accident in a command line */
const SHELL_LIKE = /\s(?:&&|\|\|?|;|>>?)\s/

const TEMPLATE = /\$\{[^}]*\}/g

/** Which of the arguments a program of the command reads as code: there, shell syntax is no accident. */
function readAsCode(command: readonly string[], argv: readonly string[]): ReadonlySet<number> {
  const words = [...command, ...argv].map((text, i) => {
    const prefix = text.replace(/\$\{.*$/s, "")
    return { prefix, i: i - command.length, ...(prefix === text ? { texts: [text] } : {}) }
  })
  return new Set(programTexts(words).texts.map((each) => each.word.i))
}

export function checkArgv(
  argv: readonly string[],
  path: string,
  context: Context,
  command: readonly string[] = [],
): void {
  const code = readAsCode(command, argv)
  argv.forEach((template, i) => {
    const at = joinPath(path, i)
    const literal = code.has(i) ? "" : template.replaceAll(TEMPLATE, "")
    if (SHELL_OPERATOR.test(template) || SHELL_TEXT.test(literal)) {
      context.report.error(
        "argv-shell",
        at,
        `\`${shown(template)}\` is shell syntax; no shell runs, each template is one argument`,
        "write one argument per line, and use several tools or `stdin` instead of pipes",
      )
    } else if (SHELL_LIKE.test(literal)) {
      context.report.warn(
        "argv-shell-like",
        at,
        `\`${shown(template)}\` is passed as one argument, as it stands; no shell reads it`,
        "split it into one argument per line if a shell was meant to",
      )
    }
    if (/\$\{\s*secrets\b/.test(template)) {
      context.report.error(
        "secret-in-argv",
        at,
        "a secret in an argument is visible to every process",
        "pass it as an environment variable through `auth.state.env`",
      )
    }
    if (template.includes("\u0000"))
      context.report.error("argv-shell", at, "an argument cannot hold a NUL byte", "remove it")
  })
}
