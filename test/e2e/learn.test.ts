/** `caisson learn --tool`: a registered tool beside what its runs needed. Spawned for real. */
import { execFileSync } from "node:child_process"
import { copyFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { execa } from "execa"
import { caisson, type Ended, launcher, scratch } from "../cli/run-caisson.ts"

let room: ReturnType<typeof scratch>
let workspace: string
let env: Record<string, string>
beforeEach(() => {
  room = scratch()
  workspace = join(room.folder, "workspace")
  mkdirSync(workspace)
  env = { CAISSON_DATA: join(room.folder, "data") }
})
afterEach(() => room[Symbol.dispose]())

const run = (...args: readonly string[]): Promise<Ended> => caisson(args, { env, cwd: workspace })
const out = (): string => join(room.folder, "learned")
const text = (name: string): string => readFileSync(join(out(), name), "utf8")

test("a registered tool is told what it lacks and what it never used, in diffs apart, and nothing is changed", async () => {
  await run(
    "init",
    "--out",
    "notes",
    "--tool",
    "notes.copy",
    "--write",
    "copy.txt",
    "--write",
    "never/**",
    "--exec",
    "git",
    "--",
    "cp",
    "${input.file}",
    "other.txt",
  )
  writeFileSync(join(workspace, "a"), "a")
  const before = readFileSync(join(workspace, "notes", "DRIVER.md"), "utf8")
  const ended = await run(
    "learn",
    "--tool",
    "notes.copy",
    "--manifests",
    "notes",
    "-i",
    '{"file":"a"}',
    "--runs",
    "1",
    "--out",
    out(),
  )
  expect(ended).toMatchObject({ code: 0 })
  const { widening, narrowing } = JSON.parse(ended.stdout) as Record<
    "widening" | "narrowing",
    readonly { field: string; value: string }[]
  >
  expect(widening.map(({ field, value }) => `${field} ${value}`)).toEqual(["mutates other.txt", "fs.write other.txt"])
  expect(narrowing.map(({ field, value }) => `${field} ${value}`)).toEqual(
    expect.arrayContaining(["mutates copy.txt", "mutates never/**", "exec.spawn git"]),
  )
  expect(text("widening.diff")).toMatch(/^\+.*workspace:\/other\.txt/m)
  expect(text("narrowing.diff")).toMatch(/^-.*never\/\*\*/m)
  expect(readFileSync(join(workspace, "notes", "DRIVER.md"), "utf8")).toBe(before)
  execFileSync("patch", ["-p0", "--dry-run", "-i", join(out(), "widening.diff")], { cwd: "/" })
  const again = await run(
    "learn",
    "--tool",
    "notes.copy",
    "--manifests",
    "notes",
    "-i",
    '{"file":"a"}',
    "--runs",
    "1",
    "--out",
    out(),
  )
  expect(again.code).toBe(2)
  expect(again.stderr).toContain("nothing was written")
})

test("what files of the workspace hold cannot steer the terminal that the proposal is shown on", async () => {
  writeFileSync(join(workspace, "evil.txt"), "a\u001b]0;owned\u0007\u001b[2J\u009b31m\u202eb\n")
  const terminal = "import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)"
  const { stdout } = await execa(
    "python3",
    ["-c", terminal, process.execPath, launcher, "learn", "--runs", "1", "--", "cat", "evil.txt"],
    {
      cwd: workspace,
      env: { ...env, TERM: "xterm", NO_COLOR: "1", LC_ALL: "C.UTF-8" },
      stdin: "ignore",
      reject: false,
    },
  )
  expect(stdout).toContain("example/evil.txt")
  expect(stdout).toContain("a\\x1b]0;owned\\x07\\x1b[2J\\x9b31m\\u{202e}b")
  expect(stdout).not.toMatch(/\u001b\]|\u001b\[2J|\u009b|\u202e/)
})

test("what a file of another format lacks is told, and not written into it as if it were a manifest", async () => {
  await run("init", "--out", "notes", "--tool", "word-count", "--write", "never/**", "--", "touch", "other.txt")
  const [tool, driver] = [join(workspace, "notes", "TOOL.md"), join(workspace, "notes", "DRIVER.md")]
  rmSync(tool)
  copyFileSync(
    new URL("../../fixtures/formats/aml/word-count.tool.md", import.meta.url),
    join(workspace, "notes", "word-count.tool.md"),
  )
  writeFileSync(driver, readFileSync(driver, "utf8").replace("tool: ./TOOL.md", "tool: word-count"))
  const asked = ["--tool", "word-count", "--manifests", "notes", "-i", '{"text":"x"}', "--runs", "1"]
  expect(await run("learn", ...asked, "--out", out())).toMatchObject({ code: 0 })
  expect(text("widening.diff")).toContain("by hand, as an annotation in caisson.yaml: mutates of word-count.tool.md")
  expect(text("widening.diff")).not.toContain("+++ " + join(workspace, "notes", "word-count.tool.md"))
  expect(text("widening.diff")).toMatch(/^\+ +write: \[never\/\*\*, other\.txt\]/m)
})
