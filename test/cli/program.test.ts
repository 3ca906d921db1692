/** The command tree, without starting anything. */
import { spawnSync } from "node:child_process"
import pc from "picocolors"
import { describe, expect, test } from "vitest"
import { createProgram } from "../../src/cli/program.ts"
import type { Terminal } from "../../src/cli/terminal.ts"

const plain = pc.createColors(false)
const silent: Terminal = {
  isInteractive: false,
  paint: plain,
  paintResult: plain,
  width: 80,
  result: () => undefined,
  say: () => undefined,
  canAsk: false,
  confirm: async () => false,
  during: (work) => work,
}
/** What the program prints before it would do anything, and how it ends. */
const typed = async (...words: string[]): Promise<{ text: string; exitCode: number }> => {
  let text = ""
  const keep = (part: string): void => void (text += part)
  const program = createProgram("9.8.7", silent, () => undefined)
  for (const command of [program, ...program.commands]) command.configureOutput({ writeOut: keep, writeErr: keep })
  const exitCode = await program.parseAsync(words, { from: "user" }).then(
    () => -1,
    (error: { exitCode: number }) => error.exitCode,
  )
  return { text, exitCode }
}
const commands = createProgram("9.8.7", silent, () => undefined).commands.map((command) => command.name())

describe("help and version", () => {
  test.each(["-V", "--version"])("%s tells the version", async (flag) => {
    expect(await typed(flag)).toEqual({ text: "9.8.7\n", exitCode: 0 })
  })
  test.each(commands.flatMap((name) => [[name, "-h"] as const, [name, "--help"] as const]))(
    "caisson %s %s tells how it is used",
    async (name, flag) => {
      const { text, exitCode } = await typed(name, flag)
      expect(text).toContain(`Usage: caisson ${name}`)
      expect(exitCode).toBe(0)
    },
  )
  test("caisson -h names every command and the exit codes", async () => {
    const { text } = await typed("-h")
    for (const name of commands) expect(text).toContain(`  ${name}`)
    expect(text).toContain("Exit codes:")
  })
})

test("an unknown command gets the nearest one, and is refused", async () => {
  const { text, exitCode } = await typed("tolls")
  expect(text).toContain("tools")
  expect(exitCode).not.toBe(0)
})

describe("a command that cannot be understood is refused with the next step", () => {
  test.each([
    ["call", "caisson call [options] <tool>", "`caisson tools` lists the tools"],
    ["why", "caisson why [options] <tool>", "`caisson tools` lists the tools"],
    ["validate", "caisson validate [options] <path...>", "`caisson validate --help`"],
    ["egress-proxy", "caisson egress-proxy [options]", "`caisson egress-proxy --help`"],
  ])("caisson %s without what it needs", async (name, usage, next) => {
    const { text, exitCode } = await typed(name)
    expect(text).toMatch(/^caisson: (missing required argument|required option)/)
    expect(text).toContain(usage)
    expect(text).toContain(next)
    expect(exitCode).not.toBe(0)
  })
  test.each([
    [["tolls"], "`caisson --help`"],
    [["--nosuch"], "`caisson --help`"],
    [["call", "json.query", "--workspce", "x"], "`caisson call --help`"],
    [["call", "json.query", "more"], "`caisson call --help`"],
    [["receipts", "--call"], "`caisson receipts --help`"],
    [["doctor", "--backend", "podman"], "`caisson doctor --help`"],
  ])("caisson %j", async (words, next) => {
    expect((await typed(...words)).text).toContain(next)
  })
})

test("a command that ends without having said how is a broken host, never a success", () => {
  const program = `
    import { main } from ${JSON.stringify(new URL("../../src/cli/main.ts", import.meta.url).href)}
    process.stdout.write = () => true
    main(["--version"])`
  const { status } = spawnSync(process.execPath, ["--no-warnings", "--input-type=module", "-e", program])
  expect(status).toBe(5)
})
