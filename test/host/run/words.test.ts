/** What whoever typed a run is told to type next, where the program chose the names. */
import { describe, expect, it } from "vitest"
import { LEAVE_IT_ALONE } from "../../../src/host/call/judge.ts"
import { forRun } from "../../../src/host/run/words.ts"
import { canonicalGlob } from "../../../src/manifest/values/sandbox-globs.ts"
import { matches, parseGlob, parseWorkspacePath } from "../../../src/manifest/values/globs.ts"

const hintOf = (paths: readonly string[], hint = "say that it may write there"): string => {
  const envelope = forRun({
    ok: false,
    error: { code: "undeclared_write", class: "violation", message: "", retryable: false, hint, details: { paths } },
    call: "01J",
    effects: [],
    denied: [],
    receipt: "sha256:ab",
  })
  return envelope.ok ? "" : (envelope.error.hint ?? "")
}

describe("the flag that would allow a write", () => {
  it.each(["*", "**", "a/**", "*/*", "{a,b}", "[a]?!"])("allows a file called %s and no other", (name) => {
    const glob = /--write '?(.+?)'?$/.exec(hintOf([name]))?.[1] ?? ""
    expect(canonicalGlob(glob)).toMatchObject({ ok: true })
    const [read, path] = [parseGlob(`/${glob}`), parseWorkspacePath(name)]
    if (!read.ok || !path.ok) throw new Error("neither is a path")
    expect(read.glob.segments.every(({ kind }) => kind === "literal")).toBe(true)
    expect(matches(read.glob, path.path)).toBe(true)
  })

  it("spells what a shell or a home would take for more", () => {
    expect(hintOf(["not this"])).toContain("--write 'not this'")
    expect(hintOf(["~/x\n$(id)"])).toContain("--write '\\x7e/x\\x0a\\x24(id)'")
  })

  it("is not told of what can never be committed", () => {
    expect(hintOf(["a"], LEAVE_IT_ALONE)).toBe(LEAVE_IT_ALONE)
  })
})
