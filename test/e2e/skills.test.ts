/** Each skill, followed to the letter: its commands typed, its additions made, and what comes out validates and conforms. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { execa } from "execa"
import { afterEach, beforeEach, expect, test } from "vitest"
import { parse, parseDocument } from "yaml"
import { launcher, scratch } from "../cli/run-caisson.ts"

const skills = fileURLToPath(new URL("../../skills", import.meta.url))
let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
  for (const folder of ["data", "here"]) mkdirSync(join(room.folder, folder), { mode: 0o700 })
})
afterEach(() => room[Symbol.dispose]())
const here = (): string => join(room.folder, "here")

interface Said {
  readonly command: string
  readonly stdout: string
}

/** A block of commands: each has to end well. */
const typed = async (commands: string): Promise<Said> => {
  const script = `set -e\ncaisson() { "${process.execPath}" "${launcher}" "$@"; }\n${commands}`
  const { stdout } = await execa("bash", ["-c", script], {
    cwd: here(),
    env: { CAISSON_DATA: join(room.folder, "data") },
  })
  return { command: commands, stdout }
}

/** A block of YAML joins the front matter of the file that it names, at the path that it names. */
const added = (file: string, path: string, text: string): void => {
  const [, front = "", body = ""] = /^---\n(.*?)^---\n(.*)$/ms.exec(readFileSync(join(here(), file), "utf8")) ?? []
  const document = parseDocument(front)
  const at = path === "" ? [] : path.split(/[.[\]]+/).map((part) => (/^\d+$/.test(part) ? Number(part) : part))
  for (const [key, value] of Object.entries(parse(text) as object)) document.setIn([...at, key], value)
  writeFileSync(join(here(), file), `---\n${document.toString()}---\n${body}`)
}

const follow = async (skill: string): Promise<readonly Said[]> => {
  const text = readFileSync(join(skills, skill, "SKILL.md"), "utf8")
  const said: Said[] = []
  for (const [, kind = "", file = "", path = "", block = ""] of text.matchAll(
    /^```(sh|yaml)(?: (\S+))?(?: (\S+))?\n(.*?)^```/gms,
  )) {
    if (kind === "yaml") added(file, path, block)
    else said.push(await typed(block))
  }
  return said
}

const lastOf = (said: readonly Said[], command: string): unknown =>
  JSON.parse(
    said
      .find((each) => each.command.includes(command))
      ?.stdout.trim()
      .split("\n")
      .at(-1) ?? "",
  )

test("who follows author-tool ends with a contract that validates strictly and conforms", async () => {
  const said = await follow("author-tool")
  expect(lastOf(said, "caisson call words.count")).toMatchObject({ ok: true, value: "3 sample.txt\n" })
  expect(lastOf(said, "caisson conform")).toMatchObject({ ok: true, passed: 2, failed: 0 })
})

test("who follows author-driver ends with a driver that validates strictly and conforms", async () => {
  const said = await follow("author-driver")
  expect(lastOf(said, "caisson call note.write")).toMatchObject({
    ok: true,
    effects: [{ path: "notes/a.txt", committed: false }],
  })
  expect(lastOf(said, "caisson conform")).toMatchObject({ ok: true, passed: 2, failed: 0 })
})

test.each(["author-tool", "author-driver"])("%s says what it is for where skills are looked up", (skill) => {
  const front = parse(
    /^---\n(.*?)^---/ms.exec(readFileSync(join(skills, skill, "SKILL.md"), "utf8"))?.[1] ?? "",
  ) as object
  expect(front).toMatchObject({ name: skill, description: expect.stringMatching(/Use when/) })
})
