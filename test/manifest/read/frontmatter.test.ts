import { existsSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { createReport } from "../../../src/manifest/values/diagnostics.ts"
import { readFrontmatter } from "../../../src/manifest/read/frontmatter.ts"
import { limits } from "../../../src/manifest/limits.ts"
import { loadManifest } from "../../../src/manifest/read/load.ts"
import { bytes } from "../from-text.ts"

function read(text: string | Uint8Array): { value: unknown; rules: string[]; at: string } {
  const report = createReport("TOOL.md")
  const value = readFrontmatter(typeof text === "string" ? bytes(text) : text, report)
  return { value, rules: report.diagnostics.map((d) => d.rule), at: report.diagnostics[0]?.path ?? "" }
}

describe("front matter", () => {
  it("reads YAML 1.2 core values and nothing older", () => {
    expect(
      read("---\nyes: yes\noctal: 010\ntime: 1:30\nday: 2026-01-02\nnull: ~\nlist: [1, 2.5, true]\n---\nbody").value,
    ).toEqual({
      yes: "yes",
      octal: 10,
      time: "1:30",
      day: "2026-01-02",
      null: null,
      list: [1, 2.5, true],
    })
  })

  it("accepts a byte order mark and CRLF line ends", () => {
    expect(read("\ufeff---\r\na: 1\r\nb: |\r\n  x\r\n  y\r\n---\r\nbody\r\n").value).toEqual({ a: 1, b: "x\ny\n" })
  })

  it("never looks at the body", () => {
    expect(read("---\na: 1\n---\n---js\nthrow 1\n---\n\u0000").value).toEqual({ a: 1 })
  })

  const bomb = `a: &a [x,x,x,x,x,x,x,x,x]\n${"bcdefghi"
    .split("")
    .map((k, i) => `${k}: &${k} [${Array(9).fill(`*${"abcdefgh"[i]}`).join(",")}]`)
    .join("\n")}`
  it.each([
    ["a JavaScript engine", "---js\n{}\n---\n", "frontmatter-engine"],
    ["a JavaScript engine spelt out", "---javascript\n{}\n---\n", "frontmatter-engine"],
    ["a JavaScript engine in capitals", "---JS \n{}\n---\n", "frontmatter-engine"],
    ["a JSON engine", "---json\n{}\n---\n", "frontmatter-engine"],
    ["the engine `constructor`", "---constructor\na: 1\n---\n", "frontmatter-engine"],
    ["the engine `coffee` after a blank", "--- coffee\na: 1\n---\n", "frontmatter-engine"],
    ["a blank after the first line", "--- \na: 1\n---\n", "frontmatter-start"],
    ["no front matter", "# Title\n", "frontmatter-missing"],
    ["an empty file", "", "frontmatter-missing"],
    ["an empty line before", "\n---\na: 1\n---\n", "frontmatter-missing"],
    ["no end", "---\na: 1\n", "frontmatter-open"],
    ["only the first line", "---", "frontmatter-open"],
    ["a list", "---\n- a\n---\n", "frontmatter-not-mapping"],
    ["nothing in between", "---\n---\n", "frontmatter-not-mapping"],
    ["a YAML 1.1 directive", "---\n%YAML 1.1\n---\na: yes\n---\n", "yaml-directive"],
    ["a tag directive", "---\n%TAG ! tag:x,2000:\n---\na: 1\n---\n", "yaml-directive"],
    ["an alias bomb", `---\n${bomb}\n---\n`, "yaml-anchor"],
    ["an anchor", "---\na: &x 1\n---\n", "yaml-anchor"],
    ["an alias", "---\nb: *x\n---\n", "yaml-alias"],
    ["a binary tag", "---\na: !!binary aGk=\n---\n", "yaml-tag"],
    ["a string tag", "---\na: !!str 5\n---\n", "yaml-tag"],
    ["a JavaScript tag", "---\na: !!js/function 'function(){}'\n---\n", "yaml-tag"],
    ["a local tag on a mapping", "---\na: !x {}\n---\n", "yaml-tag"],
    ["a duplicate key", "---\na: 1\na: 2\n---\n", "yaml-duplicate-key"],
    ["a duplicate key in another spelling", '---\n1: a\n"1": b\n---\n', "yaml-duplicate-key"],
    ["a duplicate key in a flow mapping", "---\nx: {a: 1, a: 2}\n---\n", "yaml-duplicate-key"],
    ["__proto__", "---\n__proto__: {a: 1}\n---\n", "yaml-forbidden-key"],
    ["__proto__ below", "---\na: { b: { __proto__: 1 } }\n---\n", "yaml-forbidden-key"],
    ["constructor", "---\nconstructor: 1\n---\n", "yaml-forbidden-key"],
    ["prototype in quotes", '---\n"prototype": 1\n---\n', "yaml-forbidden-key"],
    ["a list as a key", "---\n? [a]\n: 1\n---\n", "yaml-syntax"],
    ["not a number", "---\na: .nan\n---\n", "yaml-bad-number"],
    ["infinity", "---\na: -.inf\n---\n", "yaml-bad-number"],
    ["an integer that would be rounded", "---\na: 9223372036854775808\n---\n", "yaml-bad-number"],
    ["two documents", "---\na: 1\n...\nb: 2\n---\n", "yaml-many-documents"],
    ["a torn quote", "---\na: 'x\n---\n", "yaml-syntax"],
    ["closing brackets without end", `---\n${"}".repeat(60_000)}\n---\n`, "yaml-syntax"],
    ["opening brackets without end", `---\na: ${"[".repeat(60_000)}\n---\n`, "yaml-syntax"],
    ["a NUL byte", "---\na: x\u0000y\n---\n", "control-character"],
    ["an escape sequence", "---\na: \u001b[31m\n---\n", "control-character"],
    ["a carriage return alone", "---\na: x\ry\n---\n", "control-character"],
    ["half a surrogate pair", '---\na: "\\ud800"\n---\n', "yaml-bad-text"],
  ])("refuses %s", (_name, text, rule) => {
    const { value, rules } = read(text)
    expect(value).toBeUndefined()
    expect(rules).toContain(rule)
  })

  it("refuses bytes that are not UTF-8", () => {
    expect(read(new Uint8Array([0x2d, 0x2d, 0x2d, 0x0a, 0xff, 0xfe])).rules).toEqual(["not-utf8"])
  })

  it("says where in the front matter the fault stands", () => {
    expect(read("---\nsandbox:\n  fs:\n    read: [a, !x b]\n---\n").at).toBe("sandbox.fs.read[1]")
  })

  it("holds its size limits exactly", () => {
    const front = (size: number): string => `---\na: ${"x".repeat(size - 4)}\n---\n`
    expect(read(front(limits.frontmatterBytes)).value).toBeDefined()
    expect(read(front(limits.frontmatterBytes + 1)).rules).toEqual(["frontmatter-too-large"])
    const file = (size: number): Uint8Array => bytes(`---\na: 1\n---\n`.padEnd(size, "x"))
    expect(read(file(limits.fileBytes)).value).toEqual({ a: 1 })
    expect(read(file(limits.fileBytes + 1)).rules).toEqual(["file-too-large"])
  })

  it("holds its depth and node limits exactly", () => {
    const deep = (n: number): string => `---\na: ${"[".repeat(n)}${"]".repeat(n)}\n---\n`
    expect(read(deep(limits.yamlDepth)).value).toBeDefined()
    expect(read(deep(limits.yamlDepth + 1)).rules).toEqual(["yaml-too-deep"])
    const wide = (n: number): string => `---\na: [${"1,".repeat(n)}]\n---\n`
    expect(read(wide(limits.yamlNodes - 3)).value).toBeDefined()
    expect(read(wide(limits.yamlNodes - 2)).rules).toEqual(["yaml-too-many-nodes"])
  })

  it("executes nothing, whatever the first line asks for", () => {
    const proof = join(tmpdir(), `caisson-frontmatter-${process.pid}`)
    rmSync(proof, { force: true })
    for (const engine of ["js", "javascript", "JS ", " js", "coffee", "ts"]) {
      read(`---${engine}\n{a: (process.getBuiltinModule('fs').writeFileSync(${JSON.stringify(proof)}, 'x'), 1)}\n---\n`)
    }
    expect(existsSync(proof)).toBe(false)
  })

  it("gives the same refusal the second time (nothing is cached)", () => {
    expect(read("---\na: 1\na: 2\n---\n")).toEqual(read("---\na: 1\na: 2\n---\n"))
  })

  it("never throws and never pollutes a prototype, on any bytes", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.constantFrom(
        "---\n",
        "a: ",
        "- ",
        "{",
        "}",
        "[",
        "]",
        "&x ",
        "*x ",
        "!t ",
        "? ",
        "\n",
        "\t",
        "__proto__: ",
        "|\n",
        '"',
        "'",
        "#",
        "%",
      ),
    )
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 30 }),
        fc.uint8Array({ maxLength: 20 }),
        fc.constantFrom("TOOL.md", "CLI.md", "DRIVER.md", "SECRETS.md", "POLICY.md", "ACTION.md", "SDK.md"),
        (pieces, tail, file) => {
          const text = bytes(`---\n${pieces.join("")}\n---\n`)
          const all = new Uint8Array([...text, ...tail])
          const result = loadManifest(file, all, "compat")
          if (!result.ok)
            expect(result.diagnostics.some((d) => d.severity === "error" && d.rule !== "internal")).toBe(true)
          expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined()
        },
      ),
      { numRuns: 300 },
    )
  })

  it("never lets manifest text reach a terminal raw", () => {
    const result = loadManifest("TOOL.md", bytes('---\n"a\\e[31mb": 1\n---\n'), "compat")
    for (const d of result.diagnostics) expect(`${d.path}${d.message}${d.fix}`).not.toMatch(/[\u0000-\u001f]/)
  })
})
