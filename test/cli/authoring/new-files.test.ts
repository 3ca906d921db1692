/** What `init` is told that it cannot use, and files that it and `learn` write where somebody hostile was before. */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { faultsOf, type ScaffoldAnswers, wordsOfUnused } from "../../../src/authoring/scaffold/answers.ts"
import { writeNew } from "../../../src/cli/commands/authoring/write-new.ts"
import { removeFolder } from "../../support/remove-folder.ts"

const asked = (more: Partial<ScaffoldAnswers>): ScaffoldAnswers => ({
  kind: "cli",
  tool: "words.count",
  driver: "words-count",
  description: "Counts.",
  command: ["wc", "--words"],
  inputs: [],
  write: [],
  hosts: [],
  spawn: [],
  output: "text",
  ...more,
})

describe("an input that is declared", () => {
  it("has to be used by the command, and what to type is told", () => {
    expect(faultsOf(asked({ inputs: ["path:path"] }))).toEqual([
      "the command does not use `path`: write where each value goes, as in `-- wc --words '${input.path}'`",
    ])
    expect(faultsOf(asked({ command: ["wc", "${input.path}"], inputs: ["path:path"] }))).toEqual([])
    expect(faultsOf(asked({ command: ["wc", "${ input.path | quote }"], inputs: ["path"] }))).toEqual([])
    expect(faultsOf(asked({ command: [], inputs: ["path:path"] }))).toEqual([])
  })

  it("is told of where others are used, since it may go to stdin", () => {
    const answers = asked({ command: ["tee", "--", "${input.name}"], inputs: ["name:path", "text"] })
    expect(faultsOf(answers)).toEqual([])
    expect(wordsOfUnused(answers)).toContain("does not use `text`")
    expect(wordsOfUnused(asked({ command: ["wc", "${input.path}"], inputs: ["path"] }))).toBeUndefined()
  })

  it("has to be used by the address of a service", () => {
    const http = asked({ kind: "http", command: [], url: "https://api.example.com/v1", inputs: ["id"] })
    expect(faultsOf(http)).toEqual([
      "the address does not use `id`: write where each value goes, as in `--url 'https://api.example.com/v1?id=${input.id}'`",
    ])
  })
})

describe("new files", () => {
  let base = ""
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "caisson-new-files-"))
    for (const name of ["out", "outside"]) mkdirSync(join(base, name))
  })
  afterEach(() => removeFolder(base))
  const deep = [
    { path: "TOOL.md", text: "a" },
    { path: "example/src/deep/a.txt", text: "b" },
  ]

  it("stand in folders of folders", () => {
    expect(writeNew(join(base, "new"), deep)).toMatchObject({ ok: true })
    expect(readFileSync(join(base, "new/example/src/deep/a.txt"), "utf8")).toBe("b")
  })

  it("go through no link, wherever on the way it stands", () => {
    mkdirSync(join(base, "outside/src"))
    symlinkSync(join(base, "outside"), join(base, "out/example"))
    expect(writeNew(join(base, "out"), deep)).toMatchObject({ ok: false })
    expect(readdirSync(join(base, "outside/src"))).toEqual([])
    expect(existsSync(join(base, "out/TOOL.md"))).toBe(false)
  })
})
