import { readdirSync, readFileSync } from "node:fs"
import { join, relative } from "node:path"
import { expect, test } from "vitest"
import { createProgram } from "../../src/cli/program.ts"
import { createTerminal } from "../../src/cli/terminal.ts"
import { hostTyped, takingManifests, typedAgain } from "../../src/cli/typed-again.ts"
import type { Host } from "../../src/host/types.ts"
import type { Command } from "commander"

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

test("the commands that are completed with `--manifests` are those that take it", () => {
  const leaves = (command: Command, before: readonly string[]): readonly string[] => {
    const words = [...before, command.name()]
    const own = command.options.some(({ long }) => long === "--manifests") ? [words.join(" ")] : []
    return [...own, ...command.commands.flatMap((each) => leaves(each, words))]
  }
  const program = createProgram("0", createTerminal(), () => undefined)
  const taking = program.commands.flatMap((command) => leaves(command, []))
  expect(taking.toSorted()).toEqual(takingManifests.toSorted())
})

test("what is told to do next can be typed as it stands: hints and fixes name the folders of manifests, answers are left alone", async () => {
  const hint = "run `caisson install jq`, look with `caisson secrets list` or `caisson why TOOL`"
  const answer = {
    ok: false,
    value: { hint },
    error: { message: hint, hint, details: { rows: [{ fix: "`caisson approvals`" }] } },
  }
  const secrets = { set: async () => ({ error: { hint } }), ...{ frozen: 1 } }
  const host = Object.freeze({
    call: async () => answer,
    secrets: Object.freeze(secrets),
    data: "/d",
  }) as unknown as Host
  const typed = hostTyped(host, ["./m", "/with space/it's"])
  const flags = "--manifests ./m --manifests '/with space/it'\\''s'"
  const told = `run \`caisson install jq ${flags}\`, look with \`caisson secrets list\` or \`caisson why TOOL ${flags}\``
  expect(await typed.call({ tool: "x" })).toEqual({
    ok: false,
    value: { hint },
    error: { message: hint, hint: told, details: { rows: [{ fix: `\`caisson approvals ${flags}\`` }] } },
  })
  expect(await typed.secrets.set("a", "b")).toEqual({ error: { hint: told } })
  expect(typed.data).toBe("/d")
  expect(hostTyped(host, [])).toBe(host)
  expect(typedAgain("caisson call x --manifests y", ["z"])).toBe("caisson call x --manifests y")
})
