import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  clashing,
  fillTokens,
  isDeclaredFile,
  parseFilePath,
  scopeOfFile,
} from "../../../src/manifest/values/file-path.ts"
import type { FilePath } from "../../../src/manifest/base-types.ts"
import { matches, parseGlob, parseWorkspacePath, type WorkspacePath } from "../../../src/manifest/values/globs.ts"

const tokens = { runId: "01J0000000000000000000000A", toolId: "image.create", isoDate: "2026-04-29" }
const path = (text: string): FilePath => {
  const parsed = parseFilePath(text)
  if (!parsed.ok) throw new Error(parsed.problem)
  return parsed.path
}

describe("the path of a contract's file", () => {
  it.each([
    "uploads/scan.png",
    "generated/<toolId>/<isoDate>/<runId>.png",
    "a b/c[1].txt",
    "…/ü.txt",
    ".hidden",
    "~user/x",
    "a~",
  ])("may be %s", (text) => {
    expect(parseFilePath(text)).toEqual({ ok: true, path: text, unknown: false })
  })
  it("may have something like a token in it, which is told", () => {
    expect(parseFilePath("docs/<targetLocale>/x.pdf")).toMatchObject({ ok: true, unknown: true })
  })
  it.each([
    ["", "empty"],
    [".", "`.` segment"],
    ["a//b", "empty"],
    ["a/", "empty"],
    ["./a", "`.` segment"],
    ["a/./b", "`.` segment"],
    ["/etc/passwd", "leads out"],
    ["..", "leads out"],
    ["a/../../b", "leads out"],
    ["<runId>/../../b", "leads out"],
    ["~/x", "leads out"],
    ["~", "leads out"],
    ["a\\..\\b", "backslash"],
    ["a\nb", "control character"],
    ["a\0b", "control character"],
    ["a\u2028b", "control character"],
    ["a\u0085b", "control character"],
    ["a\ud800b", "control character"],
    ["secrets/*", "pattern"],
    ["**", "pattern"],
    [".en?", "pattern"],
    ["x".repeat(256), "longer"],
    [`${"<toolId>".repeat(4)}.txt`, "longer"],
    ["x/".repeat(2100) + "x", "longer"],
  ])("is refused: %j", (text, why) => {
    const parsed = parseFilePath(text)
    expect(parsed.ok ? "taken" : `${parsed.problem}; ${parsed.fix}`).toContain(why)
  })

  it("has its tokens filled in once", () => {
    expect(fillTokens(path("a/<toolId>/<workflowId>/<isoDate>/<runId>.txt"), tokens)).toBe(
      `a/image.create/image.create/2026-04-29/${tokens.runId}.txt`,
    )
    expect(fillTokens(path("<runId>"), { ...tokens, runId: "<toolId>" })).toBe("<toolId>")
    expect(fillTokens(path("<other>/$&$1"), tokens)).toBe("<other>/$&$1")
  })

  it("is declared by a scope that has every path it may become", () => {
    const file = path("docs/translated/<isoDate>/<runId>.pdf")
    expect(scopeOfFile(file, "t")).toBe("/docs/translated/*/*.pdf")
    const cases: readonly (readonly [boolean, string])[] = [
      [true, "/docs/translated/**"],
      [true, "/docs/"],
      [true, "/"],
      [true, "docs/translated/*/*.pdf"],
      [false, "/docs/translated/*"],
      [false, "/docs/translated/2026-04-29/*"],
      [false, "/other/**"],
      [false, "("],
    ]
    for (const [declared, scope] of cases)
      expect([scope, isDeclaredFile(file, "t", [scope])]).toEqual([scope, declared])
    expect(isDeclaredFile(file, "t", [])).toBe(false)
  })

  it("cannot meet another's", () => {
    const clash = (...paths: readonly string[]): boolean =>
      clashing(paths.map((each) => ({ path: each }))) !== undefined
    expect(clash("a/b", "a/c", "ab", "a.b")).toBe(false)
    expect(clash("a", "b", "a")).toBe(true)
    expect(clash("a/B", "A/b")).toBe(true)
    expect(clash("caf\u00e9", "cafe\u0301")).toBe(true)
    expect(clash("a/b", "a")).toBe(true)
  })
})

describe("whatever a path is written as", () => {
  const piece = fc.oneof(
    fc.constantFrom("/", "..", ".", "<runId>", "<toolId>", "<isoDate>", "<", ">", "\\", "*", "~", "\n", " ", "[", "!"),
    fc.string({ unit: "binary", maxLength: 4 }),
  )
  const text = fc.array(piece, { maxLength: 12 }).map((pieces) => pieces.join(""))

  it("is refused, or stays in the workspace as one file whose scope has it", () => {
    let taken = 0
    fc.assert(
      fc.property(text, fc.stringMatching(/^[0-9A-Z]{26}$/), (written, runId) => {
        const parsed = parseFilePath(written)
        if (!parsed.ok) {
          expect(parsed.fix).not.toBe("")
          return
        }
        taken += 1
        const filled = fillTokens(parsed.path, { ...tokens, runId })
        expect(parseWorkspacePath(filled)).toEqual({ ok: true, path: filled })
        expect(filled).not.toMatch(/^$|^[/~]\/|[\0\n\\*]/)
        const scope = parseGlob(scopeOfFile(parsed.path, tokens.toolId))
        expect(scope.ok && matches(scope.glob, filled as WorkspacePath)).toBe(true)
        expect(isDeclaredFile(parsed.path, tokens.toolId, [scopeOfFile(parsed.path, tokens.toolId)])).toBe(true)
      }),
      { numRuns: 5_000 },
    )
    expect(taken).toBeGreaterThan(100)
  })
})
