import { existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import type { Diagnostic } from "../../src/manifest/types.ts"
import { caisson, scratch } from "./run-caisson.ts"

const package_ = fileURLToPath(new URL("../..", import.meta.url))

interface Report {
  readonly ok: boolean
  readonly manifests: number
  readonly errors: number
  readonly diagnostics: readonly Diagnostic[]
}

const validate = async (...args: string[]): Promise<{ code: number | undefined; report: Report; stderr: string }> => {
  const { code, stdout, stderr } = await caisson(["validate", ...args])
  return { code, report: JSON.parse(stdout) as Report, stderr }
}

let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
})
afterEach(() => room[Symbol.dispose]())

const write = (name: string, front: string): string => {
  const file = join(room.folder, name)
  mkdirSync(join(file, ".."), { recursive: true })
  writeFileSync(file, `---\n${front}\n---\n`)
  return file
}
const tool =
  "name: A\nid: a.tool\ndescription: A tool.\nversion: 1.0.0\ninputs: { type: object }\noutputs: { type: string }"

describe("caisson validate", () => {
  test("finds nothing to say about the bundled catalogue and the tour, even in strict mode", async () => {
    const { code, report } = await validate(join(package_, "manifests"), join(package_, "tour"), "--strict")
    expect(report.diagnostics).toEqual([])
    expect(code).toBe(0)
  })

  test("finds manifests at any depth and names file, field path, message and fix of each mistake", async () => {
    write("good/TOOL.md", tool)
    const file = write(
      "some/where/deep/TOOL.md",
      tool.replace("version: 1.0.0", "version: one").replace("a.tool", "b.tool"),
    )
    const { code, report } = await validate(room.folder)
    expect(code).toBe(2)
    expect(report).toMatchObject({ ok: false, manifests: 2 })
    const [first] = report.diagnostics
    // The front matter's fourth line is the file's fifth.
    expect(first).toMatchObject({ severity: "error", file, path: "version", line: 5, column: 1 })
    expect(first?.message).not.toBe("")
    expect(first?.fix).not.toBe("")
  })

  test("lets pass in compat mode what it refuses in strict mode", async () => {
    write("TOOL.md", `${tool}\nmutates: ["workspace:/a"]\napproval: auto`)
    expect((await validate(room.folder)).code).toBe(0)
    expect((await validate(room.folder, "--strict")).code).toBe(2)
  })

  test("checks a driver's templates against the tool of the catalogue that it implements", async () => {
    const file = write(
      "DRIVER.md",
      [
        "name: D\nid: reader\ndescription: A driver.\nversion: 1.0.0\nkind: cli\nbin: cat",
        "install: [{ method: apt, package: coreutils }]",
        "version_check: { cmd: cat --version, parse: '([0-9.]+)', range: '*' }",
        "sandbox: { network: { egress: [] }, fs: { read: [], write: [], deny: [] }, exec: { allow: false }, env: {} }",
        "implements:",
        "  - { tool: file.read, version: ^1.0.0, metadata: { cli: { argv: ['${input.nonsense}'] } } }",
      ].join("\n"),
    )
    const { code, report } = await validate(room.folder)
    expect(code).toBe(2)
    expect(report.diagnostics).toContainEqual(
      expect.objectContaining({ severity: "error", file, path: "implements[0].metadata.cli.argv[0]" }),
    )
  })

  test("says where YAML is malformed, by the file's own lines", async () => {
    const file = write("TOOL.md", 'name: A\nid: a.tool\ndescription: "open')
    const { report } = await validate(room.folder)
    expect(report.diagnostics).toMatchObject([{ rule: "yaml-syntax", file, line: expect.any(Number) }])
    const { line, message } = report.diagnostics[0] as Diagnostic & { line: number }
    expect(message).toContain(`line ${line}`)
    expect([4, 5]).toContain(line)
  })

  test("never runs front matter", async () => {
    const proof = join(room.folder, "proof")
    writeFileSync(
      join(room.folder, "TOOL.md"),
      `---js\n{ a: require("fs").writeFileSync(${JSON.stringify(proof)}, "x") }\n---\n`,
    )
    const { code, report } = await validate(room.folder)
    expect(code).toBe(2)
    expect(report.errors).toBeGreaterThan(0)
    expect(existsSync(proof)).toBe(false)
  })

  test("ends with 2 where there are no manifests at all, or no such path", async () => {
    const empty = await validate(room.folder)
    expect(empty.code).toBe(2)
    expect(empty.stderr).toContain("no manifests found")
    expect((await validate(join(room.folder, "missing"))).code).toBe(2)
  })
})

describe("a driver that puts an input into `sh -c`", () => {
  const shell = (argv: string): string =>
    `name: S\nid: shelly\ndescription: Runs a shell.\nversion: 1.0.0\nkind: cli\nbin: sh\n` +
    `install: [{ method: apt, package: dash }]\nversion_check: { cmd: sh --version, parse: '(\\d+\\.\\d+)', range: '*' }\n` +
    `sandbox: { network: { egress: [], ingress: [] }, fs: { read: ["**"], write: [], deny: [] }, exec: { allow: false, spawn: [] }, env: { pass: [], set: {} } }\n` +
    `implements: [{ tool: ./TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ${argv} } } }]`
  const withInput = tool.replace(
    "{ type: object }",
    "{ type: object, required: [q], properties: { q: { type: string } } }",
  )

  test.each(["--strict", "--json"])("is refused with %s, and nobody says that no shell reads it", async (flag) => {
    write("TOOL.md", withInput)
    const file = write("DRIVER.md", shell('[-c, "grep ${input.q} notes | head && true"]'))
    const { code, report } = await validate(room.folder, flag)
    expect(code).toBe(2)
    expect(report.diagnostics.map((each) => [each.rule, each.severity, each.file])).toEqual([
      ["template-program-text", "error", file],
    ])
  })

  test("passes where the input is an argument of the fixed program", async () => {
    write("TOOL.md", withInput)
    write("DRIVER.md", shell(`[-c, 'grep -e "$1" notes | head; echo $(date)', sh, "\${input.q}"]`))
    const { code, report } = await validate(room.folder, "--strict")
    expect(report.diagnostics).toEqual([])
    expect(code).toBe(0)
  })
})
