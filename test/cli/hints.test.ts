import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { expect, test } from "vitest"
import { createProgram } from "../../src/cli/program.ts"
import { createTerminal } from "../../src/cli/terminal.ts"

const root = join(import.meta.dirname, "../..")
const commands = new Set(
  createProgram("0", createTerminal(), () => undefined).commands.map((command) => command.name()),
)

const filesBelow = (folder: string, ending: string): readonly string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ending))
    .map((entry) => join(entry.parentPath, entry.name))

/** `caisson WORD` in quotes or backticks, where a reader would type it. */
const named = (text: string): readonly string[] =>
  [...text.matchAll(/[`"'](?:npx )?caisson ([a-z][a-z-]*)/g)].map((match) => match[1] ?? "")

test("no hint, fix, message or document names a command that does not exist", () => {
  const files = [
    ...filesBelow("src", ".ts"),
    ...filesBelow("docs", ".md"),
    ...["README.md", "SECURITY.md", "CONTRIBUTING.md"].map((name) => join(root, name)),
  ]
  const found = files.flatMap((file) =>
    named(readFileSync(file, "utf8")).map((word) => ({ file: relative(root, file), word })),
  )
  expect(found.length).toBeGreaterThan(10)
  expect(found.filter(({ word }) => !commands.has(word))).toEqual([])
})
