/** What documents show, typed as it is written: commands in a shell of the clone, files, and programs. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { execa } from "execa"
import { launcher } from "../cli/run-caisson.ts"

export const clone = fileURLToPath(new URL("../..", import.meta.url))

export const blocksIn = (text: string, language = "sh"): readonly string[] =>
  [...text.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\``, "gms"))].map(([, block = ""]) => block)
export const blocksOf = (document: string, language = "sh"): readonly string[] =>
  blocksIn(readFileSync(join(clone, document), "utf8"), language)

interface Typing {
  /** a home and temporary files of its own are made in it */
  readonly room: string
  readonly stopAtFailure?: boolean
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** In a shell; `caisson` and `npx caisson` are the launcher of this clone. What came on stdout, by lines. */
export const type = async (
  commands: string,
  { room, stopAtFailure = true, cwd = clone, env = {} }: Typing,
): Promise<readonly string[]> => {
  for (const folder of ["home", "tmp"]) mkdirSync(join(room, folder), { recursive: true })
  const script = `${stopAtFailure ? "set -e" : ""}
caisson() { "${process.execPath}" "${launcher}" "$@"; }
npx() { shift; caisson "$@"; }
${commands}`
  const own = { HOME: join(room, "home"), TMPDIR: join(room, "tmp"), CAISSON_DATA: "" }
  const { stdout, stderr, exitCode } = await execa("bash", ["-c", script], {
    cwd,
    env: { ...own, ...env },
    stdin: "ignore",
    reject: false,
  })
  if (stopAtFailure && exitCode !== 0) throw new Error(`ended with ${exitCode}: ${stderr}`)
  return stdout.split("\n").filter((line) => line !== "")
}

export const jsonIn = (lines: readonly string[]): readonly object[] =>
  lines.flatMap((line) => (line.startsWith("{") || line.startsWith("[") ? [JSON.parse(line) as object] : []))

/** The files that a document shows whole (```yaml NAME.md, ```js NAME), written below `folder`; their paths. */
export const writeShown = (document: string, folder: string): readonly string[] =>
  [...readFileSync(join(clone, document), "utf8").matchAll(/^```(yaml|js) (\S+)\n(.*?)^```/gms)].map(
    ([, kind, name = "", text = ""]) => {
      const path = join(folder, name)
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, kind === "yaml" ? `---\n${text}---\n` : text)
      return path
    },
  )

type Scope = Readonly<Record<string, unknown>>
const AsyncFunction = (async () => undefined).constructor as new (
  ...words: string[]
) => (...values: unknown[]) => Promise<unknown>

/**
 * A piece of a program, with what it takes for granted: its imports come from `modules`, which have to export those names. The
 * answer is what `value` says at its end.
 */
export const runPiece = async (
  text: string,
  {
    modules = {},
    scope = {},
    value = "undefined",
  }: { modules?: Readonly<Record<string, Scope>>; scope?: Scope; value?: string },
): Promise<unknown> => {
  const given: Record<string, unknown> = { ...scope }
  const body = text.replace(/^\s*import \{ (.*?) \} from "(.*?)"$/gm, (_, names: string, from: string) => {
    for (const name of names.split(", ")) {
      if (modules[from]?.[name] === undefined) throw new Error(`${from} has no ${name}`)
      given[name] = modules[from][name]
    }
    return ""
  })
  return new AsyncFunction(...Object.keys(given), `"use strict"\n${body}\nreturn ${value}`)(...Object.values(given))
}
