/** The workspace of an example that somebody hostile wrote: nothing of it is outside of its own folder. */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { furnish } from "../../../src/host/conform/furnish.ts"
import { removeFolder } from "../../support/remove-folder.ts"

let base = ""
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-furnish-"))
  for (const name of ["outside", "tool", "tool/example"]) mkdirSync(join(base, name))
})
afterEach(() => removeFolder(base))

const from = (path: string): ReturnType<typeof furnish> =>
  furnish({ file: join(base, "tool", "TOOL.md"), files: [{ path, content: "planted" }] })

describe("files of an example", () => {
  it.each(["out/a", "out/new/deep/a"])("go through no link that its folder brought along: %s", (path) => {
    symlinkSync(join(base, "outside"), join(base, "tool/example/out"))
    expect(() => from(path)).toThrow("leads through out, which is no folder")
    expect(readdirSync(join(base, "outside"))).toEqual([])
  })

  it("take the place of a link, and leave alone what it led to", () => {
    const kept = join(base, "outside", "kept")
    writeFileSync(kept, "kept")
    symlinkSync(kept, join(base, "tool/example/a"))
    using workspace = from("a")
    expect(readFileSync(join(workspace.folder, "a"), "utf8")).toBe("planted")
    expect(readFileSync(kept, "utf8")).toBe("kept")
  })

  it("are there in folders of their own, and gone afterwards", () => {
    const workspace = from("new/deep/a")
    expect(readFileSync(join(workspace.folder, "new/deep/a"), "utf8")).toBe("planted")
    workspace[Symbol.dispose]()
    expect(existsSync(workspace.folder)).toBe(false)
  })
})
