import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { canonicalGlob, globCovers } from "../../../src/manifest/values/sandbox-globs.ts"

describe("canonicalGlob", () => {
  it.each([
    ["./inventory/**", "inventory/**"],
    ["notes/", "notes/**"],
    [".", "**"],
    ["**/*.mp3", "**/*.mp3"],
    ["~/.config/app/**", "~/.config/app/**"],
    ["/etc/ssl/certs/**", "/etc/ssl/certs/**"],
  ])("writes %s as %s", (text, glob) => {
    expect(canonicalGlob(text)).toEqual({ ok: true, glob })
  })
  it.each(["", " a", "../a", "a/../b", "a//b", "a/./b", "a\\b", "~root/x", "a**b", "{a,b}", "[ab]", "a?", "a\u0000b"])(
    "refuses %j",
    (text) => {
      expect(canonicalGlob(text).ok).toBe(false)
    },
  )
})

describe("globCovers", () => {
  it.each([
    ["**", "a/b/c", true],
    ["**", "**", true],
    ["a/**", "a/b/**", true],
    ["a/**", "a/b/*.md", true],
    ["a/**", "a", false],
    ["a/*", "a/b", true],
    ["a/*", "a/**", false],
    ["a/*", "a/b/c", false],
    ["*.md", "x.md", true],
    ["*.md", "*.md", true],
    ["*.md", "*", false],
    ["a/**/z", "a/b/c/z", true],
    ["a/**/z", "a/b/c/y", false],
    ["**", "~/x", false],
    ["**", "/etc/passwd", false],
    ["~/.a/**", "~/.a/b", true],
    ["~/.a/**", ".a/b", false],
  ])("%s covers %s: %s", (wide, narrow, expected) => {
    expect(globCovers(wide, narrow)).toBe(expected)
  })

  const segment = fc.constantFrom("a", "b", "*", "**", "*.md", "x.md")
  const glob = fc.array(segment, { minLength: 1, maxLength: 5 }).map((s) => s.join("/"))
  const path = fc
    .array(fc.constantFrom("a", "b", "x.md", "y.md"), { minLength: 1, maxLength: 5 })
    .map((s) => s.join("/"))
  it("never says yes when a path matches the narrow glob but not the wide one", () => {
    fc.assert(
      fc.property(glob, glob, path, (wide, narrow, file) => {
        if (globCovers(wide, narrow) && globCovers(narrow, file)) expect(globCovers(wide, file)).toBe(true)
      }),
      { numRuns: 3000 },
    )
  })
  it("answers long hostile globs at once", () => {
    expect(globCovers(Array(32).fill("**/a").join("/"), Array(64).fill("a").join("/"))).toBe(true)
    expect(globCovers(`${Array(31).fill("**/a").join("/")}/z`, Array(64).fill("a").join("/"))).toBe(false)
  })
})
