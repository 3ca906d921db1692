import { chmodSync, chownSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { describeNeeding, noRoot } from "../../support/needing.ts"
import { listTree } from "./fixtures/tree.ts"
import { modes, OWNER, Workspace } from "./fixtures/workspaces.ts"

const ROOT = 0

/** A file of root's in a folder of the workspace's owner. */
const rootsFile = (workspace: Workspace, name: string, mode: number): string => {
  const path = join(workspace.dir, name)
  writeFileSync(path, "root's")
  chownSync(path, ROOT, ROOT)
  chmodSync(path, mode)
  return path
}

describeNeeding("a file of another user's in the workspace, committed by root", noRoot, () => {
  const commit = (workspace: Workspace, run: string) =>
    workspace.layer({ mode: "root", run, commit: { dataDir: workspace.dataDir } }).result

  it("belongs to the workspace's owner once a tool has put its own in its place", () => {
    using workspace = new Workspace("true")
    const path = rootsFile(workspace, "r", 0o644)
    expect(commit(workspace, "rm -f r; echo evil > r; chmod 755 r")).toEqual({ ok: true })
    expect(readFileSync(path, "utf8")).toBe("evil\n")
    expect(statSync(path).uid).toBe(OWNER)
  })

  it("never gets a mode that a tool gave to a copy of the same content", () => {
    using workspace = new Workspace("true")
    const path = rootsFile(workspace, "r", 0o644)
    const { ino } = statSync(path)
    expect(commit(workspace, "cp r x; mv -f x r; chmod 777 r")).toEqual({ ok: true })
    expect(statSync(path)).toMatchObject({ uid: OWNER })
    expect(statSync(path).ino).not.toBe(ino)
  })

  it("stays that user's where its owner lets others write to it and the tool did", () => {
    using workspace = new Workspace("true")
    const path = rootsFile(workspace, "r", 0o666)
    expect(commit(workspace, "echo more >> r")).toEqual({ ok: true })
    expect(statSync(path).uid).toBe(ROOT)
    expect(statSync(path).mode & 0o777).toBe(0o666)
  })

  it("is no folder that a tool can replace to choose its mode", () => {
    using workspace = new Workspace("true")
    mkdirSync(join(workspace.dir, "d"), { mode: 0o755 })
    chownSync(join(workspace.dir, "d"), ROOT, ROOT)
    const was = listTree(workspace.dir)
    expect(commit(workspace, "rmdir d; mkdir d; chmod 777 d")).toMatchObject({
      ok: false,
      reason: "failed",
      message: expect.stringContaining("another user"),
    })
    expect(listTree(workspace.dir)).toEqual(was)
  })
})

describe.each(modes)("an attribute that overlay file systems read as their own, in %s mode", (mode) => {
  it.each(["user.overlay.opaque", "user.overlay.redirect", "user.overlay.metacopy"])(
    "%s is never committed",
    (name) => {
      using workspace = new Workspace("mkdir d; echo a > d/a; echo f > f")
      const was = listTree(workspace.dir)
      const set = `import os; os.setxattr("d", "${name}", b"y"); os.setxattr("f", "${name}", b"y")`
      const { result, writes } = workspace.layer({
        mode,
        run: `python3 -c '${set}' || true; echo new > new`,
        commit: { dataDir: workspace.dataDir },
      })
      const refused = writes?.effects.filter((effect) => effect.refused !== undefined) ?? []
      // Where the kernel does not let the program set it at all, there is nothing to refuse.
      if (refused.length > 0) {
        expect(result).toMatchObject({ ok: false, message: expect.stringContaining("overlay") })
        expect(listTree(workspace.dir)).toEqual(was)
      } else expect(listTree(workspace.dir).join("\n")).not.toContain("overlay")
      if (mode === "root") expect(refused.map(({ path }) => path)).toEqual(["d", "f"])
    },
  )
})
