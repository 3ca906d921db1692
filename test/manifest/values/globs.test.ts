import fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  covers,
  coversTree,
  type Glob,
  matches,
  mayMatchBelow,
  parseGlob,
  parseWorkspacePath,
  type WorkspacePath,
} from "../../../src/manifest/values/globs.ts"

const glob = (text: string): Glob => {
  const result = parseGlob(text)
  if (!result.ok) throw new Error(result.message)
  return result.glob
}
const path = (text: string): WorkspacePath => {
  const result = parseWorkspacePath(text)
  if (!result.ok) throw new Error(result.message)
  return result.path
}

describe("a glob", () => {
  it.each([
    ["/", "a", true],
    ["/", "a/b/.c", true],
    ["./", "a/b", true],
    ["/notes/*", "notes/a", true],
    ["/notes/*", "notes/a/b", false],
    ["/notes/*", "notes", false],
    ["notes/*", "notes/.hidden", true],
    ["/governance/signatures/", "governance/signatures/a/b", true],
    ["/governance/signatures/", "governance/signatures", false],
    ["/governance/signatures", "governance/signatures/a", false],
    ["./inventory/**", "inventory/x/y", true],
    ["**/*.mp3", "a.mp3", true],
    ["**/*.mp3", "x/y/a.mp3", true],
    ["**/*.mp3", "x/y/a.mp3/b", false],
    ["a/**/b", "a/b", true],
    ["a/**/b", "a/x/y/b", true],
    ["a/**/b", "a/x/y/c", false],
    ["**/.git/**", ".git/x", true],
    ["**/.git/**", "sub/.git/x/y", true],
    ["**/.git/**", ".gitignore", false],
    ["a\\xFFc", "a\\xffc", true],
    ["a\\x2a", "a*", true],
    ["app/\\x5bslug\\x5d/*", "app/[slug]/page", true],
    ["app/\\x5bslug\\x5d/*", "app/s/page", false],
    ["a\\x2a", "ab", false],
    ["a\\x5cb", "a\\x5cb", true],
    ["A", "a", false],
    ["a.c", "abc", false],
    ["(a+)+", "aaa", false],
    ["*a*", "bab", true],
    ["*", "a", true],
    ["*", "a/b", false],
    ["**", "a/b", true],
  ])("%s and the path %s: %s", (pattern, text, expected) => {
    expect(matches(glob(pattern), path(text))).toBe(expected)
  })

  it.each([
    "",
    "../x",
    "a/../b",
    "a//b",
    "a/./b",
    "a**b",
    "**.mp3",
    "~/x",
    "~",
    "a\0b",
    "//",
    "a\\b",
    "a?c",
    "{a,b}",
    "[ab]",
    "!a",
    "x".repeat(1025),
    "a/".repeat(70),
  ])("does not parse from %j", (text) => {
    expect(parseGlob(text).ok).toBe(false)
  })

  it("names the right spelling for a double star within a segment", () => {
    expect(parseGlob("x/**.mp3")).toMatchObject({ ok: false, message: expect.stringContaining('"**/*.mp3"') })
  })

  it("stays linear on patterns that make backtracking matchers explode", () => {
    const hostile = glob(`${"*a".repeat(400)}b`)
    const deep = glob(`${"**/a/".repeat(31)}b`)
    expect(matches(hostile, path("a".repeat(4000)))).toBe(false)
    expect(matches(deep, path(`${"a/".repeat(1000)}c`))).toBe(false)
  })
})

describe("a workspace path", () => {
  it.each(["/a", "a//b", "a/", "../a", "a/..", "./a", "a\0"])("does not parse from %j", (text) => {
    expect(parseWorkspacePath(text).ok).toBe(false)
  })
})

const name = fc
  .string({ unit: fc.constantFrom("a", "b", "."), minLength: 1, maxLength: 3 })
  .filter((text) => text !== "." && text !== "..")
const segment = fc.oneof(
  fc.constant("**"),
  fc
    .string({ unit: fc.constantFrom("a", "b", ".", "*"), minLength: 1, maxLength: 3 })
    .filter((text) => !text.includes("**") && text !== "." && text !== ".."),
)
const somePattern = fc
  .tuple(fc.array(segment, { minLength: 1, maxLength: 4 }), fc.boolean())
  .map(([parts, subtree]) => parts.join("/") + (subtree ? "/" : ""))
const somePath = fc.array(name, { minLength: 1, maxLength: 5 })

/** The grammar read off naively, with backtracking. */
const naiveSegment = (pattern: string, text: string): boolean => {
  if (pattern === "") return text === ""
  if (pattern.startsWith("*"))
    return naiveSegment(pattern.slice(1), text) || (text !== "" && naiveSegment(pattern, text.slice(1)))
  return text !== "" && pattern[0] === text[0] && naiveSegment(pattern.slice(1), text.slice(1))
}
const naive = (pattern: readonly string[], segments: readonly string[]): boolean => {
  const [first, ...rest] = pattern
  if (first === undefined) return segments.length === 0
  if (first === "**") {
    if (rest.length === 0) return segments.length > 0
    return naive(rest, segments) || (segments.length > 0 && naive(pattern, segments.slice(1)))
  }
  return segments[0] !== undefined && naiveSegment(first, segments[0]) && naive(rest, segments.slice(1))
}
const naiveMatch = (text: string, segments: readonly string[]): boolean => {
  const subtree = text.endsWith("/")
  const parts = (subtree ? text.slice(0, -1) : text).split("/")
  return naive(
    (subtree ? [...parts, "**"] : parts).filter((part, index, all) => part !== "**" || all[index - 1] !== "**"),
    segments,
  )
}

describe("the glob matcher", () => {
  it("agrees with a naive reading of the grammar", () => {
    fc.assert(
      fc.property(
        somePattern,
        somePath,
        (pattern, segments) => matches(glob(pattern), path(segments.join("/"))) === naiveMatch(pattern, segments),
      ),
      { numRuns: 3000 },
    )
  })
  it("says that one glob covers another only if every path of that one matches", () => {
    fc.assert(
      fc.property(somePattern, somePattern, somePath, (wide, narrow, segments) => {
        const file = path(segments.join("/"))
        return !covers(glob(wide), glob(narrow)) || !matches(glob(narrow), file) || matches(glob(wide), file)
      }),
      { numRuns: 5000 },
    )
  })
  it("says a tree is covered only if everything below matches", () => {
    fc.assert(
      fc.property(somePattern, fc.array(name, { maxLength: 3 }), somePath, (pattern, dir, below) => {
        const covered = coversTree(glob(pattern), path(dir.join("/")))
        return !covered || matches(glob(pattern), path([...dir, ...below].join("/")))
      }),
      { numRuns: 3000 },
    )
  })
  it("never misses a match below a folder", () => {
    fc.assert(
      fc.property(somePattern, fc.array(name, { maxLength: 3 }), somePath, (pattern, dir, below) => {
        const matched = matches(glob(pattern), path([...dir, ...below].join("/")))
        return !matched || mayMatchBelow(glob(pattern), path(dir.join("/")))
      }),
      { numRuns: 3000 },
    )
  })
  it.each([
    ["a/", "a", true],
    ["a/**", "a/b", true],
    ["/", "", true],
    ["**/*", "x", true],
    ["a/*", "a", false],
    ["a/**/x", "a", false],
    ["a/", "", false],
  ])("%s covers the tree at %j: %s", (pattern, dir, expected) => {
    expect(coversTree(glob(pattern), path(dir))).toBe(expected)
  })
  it.each([
    ["a/b/*", "a", true],
    ["a/b/*", "", true],
    ["a/b", "a/b", false],
    ["a/b", "c", false],
  ])("%s may match below %j: %s", (pattern, dir, expected) => {
    expect(mayMatchBelow(glob(pattern), path(dir))).toBe(expected)
  })
})
