/** `caisson learn --tool`: a registered tool beside what its runs needed. Spawned for real. */
import { execFileSync } from "node:child_process"
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { caisson, type Ended, scratch } from "../cli/run-caisson.ts"

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
