import { describe, expect, it } from "vitest"
import { cliKind } from "../../../../src/host/drivers/cli/kind.ts"
import type { KindCall, ProgramCommand } from "../../../../src/host/drivers/kind.ts"
import type { DriverContract, Implementation } from "../../../../src/manifest/types.ts"
import { cliSpec, driverOf, egress, implementationOf, programOf, sandboxOf, toolOf } from "../../call/values.ts"
import { bodyOf } from "../../resolver/contracts.ts"

const text = (words: string) => ({ bytes: new TextEncoder().encode(words), truncated: false, total: words.length })
const callOf = (
  driver: Partial<DriverContract> = {},
  entry: Partial<Implementation> = {},
  change: Partial<KindCall> = {},
): KindCall => {
  const tool = toolOf()
  const contract = driverOf(driver)
  const { binding } = cliKind.bind(contract, 0, tool, implementationOf(entry))
  return {
    tool,
    driver: { key: "scribe@2", contract },
    binding,
    input: { text: "s3cret words" },
    context: {},
    operation: "o",
    program: programOf(),
    ...change,
  }
}
const none = () => undefined
const value = <T>(answer: { ok: true; value: T } | { ok: false; message: string }): T => {
  if (!answer.ok) throw new Error(answer.message)
  return answer.value
}
const command = (call = callOf()): ProgramCommand => {
  const made = value(cliKind.command(call))
  if (made.run !== "program") throw new Error(made.run)
  return made
}

describe("the cli kind", () => {
  it("needs what the driver declares, and for a narrowed tool no more than that tool", () => {
    const declared = { egress: egress("a.test", "b.test") }
    expect(value(cliKind.needs(callOf(declared), none))).toMatchObject({
      fs: cliSpec.sandbox.fs,
      egress: [{ text: "a.test" }, { text: "b.test" }],
      tty: false,
    })
    const narrowed = { cli: { argv: [], egress: [], sandbox: sandboxOf({ fs: { read: [], write: [], deny: ["x"] } }) } }
    expect(value(cliKind.needs(callOf(declared, narrowed), none))).toMatchObject({
      fs: { read: [], write: [], deny: ["x"] },
      egress: [],
    })
  })
  it("says which programs of `exec.spawn` are not there", () => {
    const spawning = { ...cliSpec, sandbox: sandboxOf({ exec: { allow: true, spawn: ["git", "nosuch"] } }) }
    const call = callOf({ body: { kind: "cli", cli: spawning } })
    const found = (name: string) => (name === "git" ? programOf({ name, found: "/usr/bin/git" }) : undefined)
    const needs = value(cliKind.needs(call, found))
    expect(needs.executables).toMatchObject({ children: true, spawn: { git: "/usr/bin/git" } })
    expect(needs.notes).toEqual(["exec.spawn names programs that are not on this machine: nosuch"])
  })
  it("is nothing without its program", () => {
    const { program: _program, ...call } = callOf()
    expect(cliKind.needs(call, none)).toMatchObject({ ok: false, code: "tool_unavailable" })
    expect(cliKind.command(call)).toMatchObject({ ok: false, code: "tool_unavailable" })
  })
  it("builds one argument a template, and tells the templates where there is no input", () => {
    expect(command().argv).toEqual(["/usr/bin/scribe", "-q", "--", "s3cret words"])
    expect(cliKind.outline(callOf())).toEqual(["scribe", "-q", "--", "${input.text}"])
  })
  it("tells a receipt the templates and a count, never a value", () => {
    const facts = cliKind.evidence(callOf(), command())
    expect(facts).toEqual({ argv_template: ["--", "${input.text}"], argv_count: 4 })
    expect(JSON.stringify(facts)).not.toContain("s3cret")
  })
  it("names the values that a call cannot do without", () => {
    expect(callOf().binding.needs).toEqual([{ root: "input", keys: ["text"] }])
    const spared = callOf({}, { cli: { argv: ["${input.file | default('x')}", "${input.text | flag('--t')}"] } })
    expect(spared.binding.needs).toEqual([])
  })
  it("reads an exit by the driver's rules, and one that says so as a login that is gone", () => {
    const auth = { state: { paths: [], env: ["KEY"] }, expiry: { by: "exit_code", code: 9 } as const }
    const exit = (exitCode: number) => ({ exitCode, stdout: text("out"), stderr: text("") })
    const call = callOf({ auth })
    const { signal } = new AbortController()
    expect(command(call).read(exit(0), signal)).toMatchObject({ ok: true, value: "out" })
    expect(command(call).read(exit(9), signal)).toMatchObject({ ok: false, code: "auth_required" })
    expect(command().read(exit(9), signal)).toMatchObject({ ok: false, code: "upstream_error" })
  })
  it("takes a driver of another kind for the bug that it is", () => {
    expect(() => cliKind.unenforceable(driverOf({ body: bodyOf("http") }))).toThrow("is of kind http, not cli")
  })
})
