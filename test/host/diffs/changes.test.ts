import { describe, expect, it } from "vitest"
import { changesOf } from "../../../src/host/diffs/changes.ts"
import { hostLimits } from "../../../src/host/limits.ts"
import type { ReportedEffect } from "../../../src/host/types.ts"

const effect = (kind: ReportedEffect["kind"], path: string, more: Partial<ReportedEffect> = {}): ReportedEffect => ({
  kind,
  path,
  declared: true,
  committed: false,
  ...more,
})
const text = (of: string) => ({ size: Buffer.byteLength(of), text: of })

describe("what a person reads of a call's changes", () => {
  it("has deletions first, and leaves no effect out, whatever is known of its content", () => {
    const effects = [
      effect("create", "a.txt"),
      effect("delete", "z.txt"),
      effect("chmod", "run.sh", { mode: { before: 0o644, after: 0o755 } }),
      effect("symlink", "link", { target: "../elsewhere" }),
      effect("rmdir", "old"),
    ]
    const changes = changesOf(effects, [{ path: "z.txt", before: text("gone\n") }])
    expect(changes.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "delete z.txt",
      "rmdir old",
      "create a.txt",
      "chmod run.sh",
      "symlink link",
    ])
    expect(changes[0]?.diff).toBe("@@ -1,1 +0,0 @@\n-gone")
    expect(changes[3]).toMatchObject({ mode: "0644 → 0755" })
    expect(changes[4]).toMatchObject({ target: "../elsewhere" })
  })

  it("shows text line by line, and anything else in a sentence", () => {
    const changes = changesOf(
      [effect("modify", "a.txt"), effect("modify", "b.bin"), effect("modify", "c.log")],
      [
        { path: "a.txt", before: text("one\ntwo\n"), after: text("one\n2\n") },
        { path: "b.bin", before: { size: 3, why: "binary" }, after: text("now text\n") },
        { path: "c.log", before: { size: 9_000_000, why: "large" }, after: { size: 1, why: "unreadable" } },
      ],
    )
    expect(changes[0]?.diff).toBe("@@ -1,2 +1,2 @@\n one\n-two\n+2")
    expect(changes[1]).toMatchObject({ note: "binary, 3 bytes → 9 bytes" })
    expect(changes[2]).toMatchObject({ note: "large, 9000000 bytes → cannot be read, 1 bytes" })
  })

  it("is cut where it is long, and says by how much", () => {
    const most = hostLimits.diffLines.value
    const lines = Array.from({ length: most + 50 }, (_, at) => `line ${at}\n`).join("")
    const [change] = changesOf([effect("create", "long.txt")], [{ path: "long.txt", after: text(lines) }])
    expect(change?.diff?.split("\n")).toHaveLength(most)
    expect(change?.note).toBe("51 more lines")
  })

  it("gives up on what is too different to compare, and shows both whole", () => {
    const many = (word: string): string => Array.from({ length: 3_000 }, (_, at) => `${word} ${at * 7}\n`).join("")
    const [change] = changesOf(
      [effect("modify", "x")],
      [{ path: "x", before: text(many("old")), after: text(many("new")) }],
    )
    expect(change?.note).toContain("too different")
    expect(change?.diff?.startsWith("-old 0\n")).toBe(true)
  })
})
