/**
 * Cases against a copy of the source with one control taken out.
 *
 * Guarantees: the copy lives in a temporary folder and is removed; the cases run in a process of their own. An edit whose
 * text is not found exactly once throws: a proof that proves nothing must not pass.
 */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { removeFolder, temporaryFolder } from "../support/sealed.ts"
import { applies, escapeCases } from "./cases/index.ts"
import type { Control } from "./controls.ts"
import type { Verdict } from "./escape-case.ts"

const repository = fileURLToPath(new URL("../..", import.meta.url))

/** The text, however a formatter breaks its lines: space is any space, brackets may stand apart from what they hold. */
const asWritten = (text: string): RegExp => {
  const spaced = text
    .trim()
    .replace(/[.*+?^${}()|[\]\\]/g, "\\$&")
    .replace(/\s+/g, "\\s+")
  const apart = spaced.replace(/(?:\\[([{])(?!\\s)/g, "$&\\s*").replace(/\\[)\]}]/g, ",?\\s*$&")
  return new RegExp(apart, "g")
}

/** Edits whose text is not in today's source exactly once. */
export const brokenEdits = (control: Pick<Control, "name" | "edits">): string[] =>
  control.edits
    .filter(
      ({ file, find }) =>
        [...readFileSync(join(repository, "src", file), "utf8").matchAll(asWritten(find))].length !== 1,
    )
    .map(({ file, find }) => `${control.name}: ${file}: ${find}`)

/** Edits made to a copy of `src`; one whose text is not there exactly once throws. */
export const editIn = (source: string, { name, edits }: Pick<Control, "name" | "edits">): void => {
  for (const { file, find, replace } of edits) {
    const path = join(source, file)
    const text = readFileSync(path, "utf8")
    const found = [...text.matchAll(asWritten(find))]
    if (found.length !== 1)
      throw new Error(`"${name}": ${file} holds the text to take out ${found.length} times: ${find}`)
    writeFileSync(
      path,
      text.replace(asWritten(find), () => replace),
    )
  }
}

/** A copy of `src` without the control, and the folder to remove afterwards. */
const weaken = (control: Control): { folder: string; source: string } => {
  const folder = temporaryFolder("weakened")
  const source = join(folder, "src")
  cpSync(join(repository, "src"), source, { recursive: true })
  cpSync(join(repository, "package.json"), join(folder, "package.json"))
  symlinkSync(join(repository, "node_modules"), join(folder, "node_modules"))
  try {
    editIn(source, control)
  } catch (error) {
    removeFolder(folder)
    throw error
  }
  return { folder, source }
}

/** The names of the cases that a control's absence must turn red, on this machine and as this user. */
export const casesOf = (control: Control): string[] => {
  const names = control.reddens.map((part) => {
    const found = escapeCases.filter(({ name }) => name.includes(part))
    if (found[0] === undefined || found.length > 1)
      throw new Error(`"${control.name}": ${found.length} cases have "${part}" in their name`)
    return found[0]
  })
  return names.filter(applies).map(({ name }) => name)
}

const leak = 'exec 77<>"$1"; shift; exec "$@"'

/** Run the control's cases without it: what became of each. */
export const runWithout = async (control: Control): Promise<Verdict[]> => {
  const { folder, source } = weaken(control)
  try {
    const command = [
      process.execPath,
      "--no-warnings",
      join(repository, "test/escape/run-cases.ts"),
      "--source",
      source,
    ]
    for (const name of casesOf(control)) command.push("--only", name)
    const leaked = join(folder, "leaked")
    writeFileSync(leaked, "left open")
    const [file, ...rest] = control.leaky === true ? ["bash", "-c", leak, "bash", leaked, ...command] : command
    const child = spawn(file as string, rest, { stdio: ["ignore", "pipe", "inherit"] })
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
    })
    await once(child, "close")
    const verdicts = text
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Verdict)
    return verdicts
  } finally {
    removeFolder(folder)
  }
}

/** Does the proof hold as the user that runs it? */
export const provable = (control: Control): boolean =>
  control.as === undefined || (control.as === "root") === (process.getuid?.() === 0)
