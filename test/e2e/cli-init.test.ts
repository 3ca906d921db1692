/** `caisson init`, spawned for real: what it writes runs at once, and never over what was there. */
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { execa } from "execa"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Envelope } from "../../src/host/types.ts"
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
const answered = (ended: Ended): Envelope => JSON.parse(ended.stdout) as Envelope

describe("what is begun passes strict validation and is called at once", () => {
  test.each([
    ["a script", ["--tool", "hello.say"], { name: "Ada" }, "Hello, Ada.\n"],
    ["a program of this machine", ["--tool", "lines.count", "--", "wc", "-l", "${input.file}"], { file: "f" }, "2 f\n"],
    ["a module of Node", ["--tool", "sdk.node", "--kind", "sdk"], { name: "Ada" }, "Hello, Ada."],
    [
      "a module of Python",
      ["--tool", "sdk.py", "--kind", "sdk", "--language", "python"],
      { name: "Ada" },
      "Hello, Ada.",
    ],
    ["an MCP server", ["--tool", "mcp.greet", "--kind", "mcp"], { name: "Ada" }, "Hello, Ada."],
  ] as const)("%s", async (_, flags, input, value) => {
    writeFileSync(join(workspace, "f"), "a\nb\n")
    const begun = await run("init", "--out", "new", ...flags)
    expect(begun).toMatchObject({ code: 0 })
    const tool = flags[1]
    expect((JSON.parse(begun.stdout) as { call: string }).call).toContain(`caisson call ${tool} --manifests new`)
    const checked = await run("validate", "--strict", "new")
    expect(JSON.parse(checked.stdout)).toMatchObject({ ok: true, manifests: 2, errors: 0, warnings: 0 })
    const called = await run("call", tool, "--manifests", "new", "-i", JSON.stringify(input))
    expect(answered(called)).toMatchObject({ ok: true, value, denied: [] })
  })
})

test("a service and a builtin are begun as far as they can be without the service and the program", async () => {
  const url = "https://api.example.com:8443/v1/items/${input.id}"
  expect(await run("init", "--tool", "item.show", "--kind", "http", "--url", url)).toMatchObject({ code: 0 })
  const driver = readFileSync(join(workspace, "item-show", "DRIVER.md"), "utf8")
  expect(driver).toContain("base_url: https://api.example.com:8443\n")
  expect(driver).toContain("egress: [api.example.com:8443]")
  const builtin = await run("init", "--tool", "own.greet", "--kind", "builtin")
  expect(JSON.parse(builtin.stdout)).toMatchObject({ call: expect.stringContaining("node own-greet/embed.mjs") })
  expect(await run("validate", "--strict", "item-show", "own-greet")).toMatchObject({ code: 0 })
})

test("nothing is written over, through a link, or where the manifests would not be valid", async () => {
  mkdirSync(join(workspace, "there"))
  writeFileSync(join(workspace, "there", "DRIVER.md"), "mine")
  const over = await run("init", "--tool", "hello.say", "--out", "there")
  expect(over).toMatchObject({ code: 2, stdout: "" })
  expect(over.stderr).toContain("nothing was written")
  expect(readdirSync(join(workspace, "there"))).toEqual(["DRIVER.md"])
  expect(readFileSync(join(workspace, "there", "DRIVER.md"), "utf8")).toBe("mine")

  mkdirSync(join(workspace, "elsewhere"))
  mkdirSync(join(workspace, "links"))
  symlinkSync("../elsewhere", join(workspace, "links", "bin"))
  expect(await run("init", "--tool", "hello.say", "--out", "links")).toMatchObject({ code: 2 })
  symlinkSync("../gone", join(workspace, "links", "TOOL.md"))
  expect(await run("init", "--tool", "lines.count", "--out", "links", "--", "wc")).toMatchObject({ code: 2 })
  expect(readdirSync(join(workspace, "links")).toSorted()).toEqual(["TOOL.md", "bin"])
  expect(readdirSync(join(workspace, "elsewhere"))).toEqual([])
  expect(existsSync(join(workspace, "gone"))).toBe(false)

  const shell = await run("init", "--tool", "sh.run", "--", "sh", "-c", "echo ${input.x}")
  expect(shell).toMatchObject({ code: 2, stdout: "" })
  expect(shell.stderr).toContain("template-program-text")
  const steering = await run("init", "--tool", "a.b", "--description", "one\u001b[2Jtwo")
  expect(steering).toMatchObject({ code: 2, stdout: "" })
  expect(await run("init", "--tool", "../x")).toMatchObject({ code: 2 })
  expect(await run("init")).toMatchObject({ code: 2 })
  expect(existsSync(join(workspace, "sh-run"))).toBe(false)
  expect(existsSync(join(workspace, "a-b"))).toBe(false)
})

test("what a description or an argument says stays what it says, whatever YAML would make of it", async () => {
  const said = "yes: #no \"*\" &a !!js {x} - --- 'q' ${input.f}"
  const begun = await run(
    "init",
    "--tool",
    "q.q",
    "--driver",
    "qq",
    "--description",
    said,
    "--",
    "echo",
    "a: b",
    "- #",
    said,
  )
  expect(begun).toMatchObject({ code: 0 })
  const shown = await run("tools", "q.q", "--manifests", "qq", "--json")
  expect(JSON.parse(shown.stdout)).toMatchObject([{ description: said }])
  const why = await run("why", "q.q", "--manifests", "qq", "-i", '{"f": "F"}')
  expect(JSON.parse(why.stdout)).toMatchObject({
    argv: [expect.stringMatching(/echo$/), "a: b", "- #", said.replace("${input.f}", "F")],
  })
})

test("at a terminal the rest is asked for, and a wrong answer is asked for again", async () => {
  const words = ["cli", "No Good", "lines.count", "", "Counts lines.", "wc -l ${input.file}", "", ""]
  const { stdout, exitCode } = await execa(
    "script",
    ["-qec", `"${process.execPath}" "${launcher}" init --out new`, "/dev/null"],
    {
      cwd: workspace,
      env: { ...env, NO_COLOR: "1" },
      input: words.map((word) => `${word}\n`).join(""),
      reject: false,
    },
  )
  expect({ exitCode, stdout }).toMatchObject({ exitCode: 0 })
  expect(stdout).toContain("a tool's id has lower case letters")
  const driver = readFileSync(join(workspace, "new", "DRIVER.md"), "utf8")
  expect(driver).toContain("id: lines-count\n")
  expect(driver).toContain('argv: [-l, "${input.file}"]')
})
