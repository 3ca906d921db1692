import { describe, expect, it } from "vitest"
import { listTree } from "./fixtures/tree.ts"
import { modes, Workspace } from "./fixtures/workspaces.ts"

interface ConflictCase {
  readonly name: string
  readonly before: string
  readonly run: string
  /** what another program does to the real workspace meanwhile */
  readonly other: string
  readonly paths: readonly string[]
  /** told by the file handle in the layer, which overlayfs stores for root only */
  readonly byHandle?: true
}

const cases: readonly ConflictCase[] = [
  {
    name: "a modified file was modified",
    before: "echo a > a",
    run: "echo b > a",
    other: "echo other > a",
    paths: ["a"],
  },
  {
    name: "a modified file was modified to the same size and time",
    before: "echo a > a; touch -d 2020-01-01 a",
    run: "echo b > a",
    other: "echo c > a; touch -d 2020-01-01 a",
    paths: ["a"],
  },
  {
    name: "a modified file was deleted",
    before: "echo a > a; echo b > b",
    run: "echo b > a",
    other: "rm a",
    paths: ["a"],
  },
  {
    name: "a modified file was replaced",
    before: "echo a > a",
    run: "echo b > a",
    other: "echo other > t; mv t a",
    paths: ["a"],
  },
  {
    name: "a modified file became a symlink",
    before: "echo a > a",
    run: "echo b > a",
    other: "ln -sf /etc/passwd a",
    paths: ["a"],
  },
  {
    name: "a modified file became a folder",
    before: "echo a > a",
    run: "echo b > a",
    other: "rm a; mkdir a",
    paths: ["a"],
  },
  { name: "a new name was taken", before: "true", run: "echo a > a", other: "echo other > a", paths: ["a"] },
  {
    name: "a new folder's name was taken",
    before: "true",
    run: "mkdir d; echo a > d/a",
    other: "mkdir d",
    paths: ["d", "d/a"],
  },
  { name: "a deleted file was modified", before: "echo a > a", run: "rm a", other: "echo other > a", paths: ["a"] },
  {
    name: "something deep in a deleted tree was modified",
    before: "mkdir -p d/e/f; echo a > d/e/f/a",
    run: "rm -r d",
    other: "echo other > d/e/f/a",
    paths: ["d"],
  },
  {
    name: "something was created in a deleted tree",
    before: "mkdir -p d/e/f; echo a > d/e/f/a",
    run: "rm -r d",
    other: "echo other > d/e/b",
    paths: ["d"],
  },
  {
    name: "something was removed from a deleted tree",
    before: "mkdir -p d/e/f; echo a > d/e/f/a; echo b > d/b",
    run: "rm -r d",
    other: "rm d/e/f/a",
    paths: ["d"],
  },
  {
    name: "something changed in a tree that a file replaces",
    before: "mkdir d; echo a > d/a",
    run: "rm -r d; echo f > d",
    other: "echo other > d/a",
    paths: ["d"],
  },
  {
    name: "a folder on the way became a symlink",
    before: "mkdir d elsewhere; echo a > d/a",
    run: "echo b > d/b",
    other: "mv d gone; ln -s elsewhere d",
    paths: ["d", "d/b"],
  },
  {
    name: "a folder on the way was deleted",
    before: "mkdir d; echo a > d/a",
    run: "echo b > d/b",
    other: "rm -r d",
    paths: ["d", "d/b"],
  },
  {
    name: "a folder on the way was swapped for another",
    before: "mkdir d e; echo a > d/a; echo a > e/a",
    run: "echo b > d/a",
    other: "mv d gone; mv e d",
    paths: ["d/a"],
  },
  {
    name: "a folder on the way was swapped for another, which was then written to",
    before: "mkdir d e; echo a > d/a; echo a > e/a",
    run: "echo b > d/a",
    other: "mv d gone; mv e d; echo z > d/z",
    paths: ["d/a"],
    byHandle: true,
  },
  { name: "a mode was changed as well", before: "echo a > a", run: "chmod 755 a", other: "chmod 600 a", paths: ["a"] },
  {
    name: "a folder's mode was changed as well",
    before: "mkdir d",
    run: "chmod 711 d",
    other: "chmod 700 d",
    paths: ["d"],
  },
  {
    name: "a symlink was led elsewhere as well",
    before: "ln -s a l",
    run: "ln -sfn b l",
    other: "ln -sfn c l",
    paths: ["l"],
  },
]

const harmless: readonly Omit<ConflictCase, "paths">[] = [
  {
    name: "a file beside was changed",
    before: "mkdir d; echo a > d/a; echo b > d/b",
    run: "echo x > d/a",
    other: "echo y > d/b",
  },
  {
    name: "a file beside was created",
    before: "mkdir d; echo a > d/a",
    run: "echo x > d/a; echo n > d/n",
    other: "echo y > d/z",
  },
  {
    name: "a file beside was deleted",
    before: "mkdir d; echo a > d/a; echo b > d/b",
    run: "echo x > d/a",
    other: "rm d/b",
  },
  { name: "a file was read", before: "echo a > a", run: "echo x > a", other: "cat a" },
  {
    name: "a file was renamed by the tool into a folder that changed",
    before: "mkdir d; echo a > a",
    run: "mv a d/a",
    other: "echo z > d/z",
  },
]

describe.each(modes)("a workspace that changed underneath, in %s mode", (mode) => {
  describe.each([
    ["while the tool ran", "meanwhile"],
    ["after the write set was read", "afterRead"],
  ] as const)("%s", (_when, moment) => {
    it.each(cases.filter((item) => mode === "root" || item.byHandle === undefined))(
      "is a conflict where $name",
      ({ before, run, other, paths }) => {
        using workspace = new Workspace(before)
        using expected = new Workspace(before)
        expected.shell(other)
        const { result } = workspace.layer({
          mode,
          run: `echo fine > fine; ${run}`,
          [moment]: other,
          commit: { dataDir: workspace.dataDir },
        })
        expect(result).toMatchObject({ ok: false, reason: "conflict" })
        const found = result?.ok === false && result.reason === "conflict" ? result.paths : []
        expect(paths.filter((path) => found.includes(path))).not.toEqual([])
        expect(found).not.toContain("fine")
        expect(names(workspace)).toEqual(names(expected))
        expect(workspace.leftovers()).toEqual([])
      },
    )
    it.each(harmless)("is no conflict where $name", ({ before, run, other }) => {
      using workspace = new Workspace(before)
      expect(workspace.layer({ mode, run, [moment]: other, commit: { dataDir: workspace.dataDir } }).result).toEqual({
        ok: true,
      })
    })
  })

  it("is none when it was written just before the call", () => {
    for (let round = 0; round < 5; round++) {
      using workspace = new Workspace("echo a > a")
      expect(workspace.layer({ mode, run: "echo b > a", commit: { dataDir: workspace.dataDir } }).result).toEqual({
        ok: true,
      })
    }
  })
})

/** Owners aside: in root mode the other program is root. */
const names = (workspace: Workspace): string[] => listTree(workspace.dir).map((line) => line.replace(/ \d+:\d+/, ""))
