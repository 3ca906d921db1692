import { linkSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { writeSetCases } from "../../corpus/write-set-cases.ts"
import { listTree } from "./fixtures/tree.ts"
import { modes, OWNER, OWNER_GROUP, Workspace } from "./fixtures/workspaces.ts"

const committable = writeSetCases.filter((item) => item.refused === undefined)
const refusable = writeSetCases.filter((item) => item.refused !== undefined)

describe.each(modes)("committing a layer, in %s mode", (mode) => {
  it.each(committable.filter((item) => item.partsLinks === undefined))(
    "leaves the workspace as the tool alone would have: $name",
    ({ before, run }) => {
      using sealed = new Workspace(before)
      using bare = new Workspace(before)
      bare.shell(run)
      const { result } = sealed.layer({ mode, run, commit: { dataDir: sealed.dataDir } })
      expect(result).toEqual({ ok: true })
      expect(listTree(sealed.dir).map(withoutLinks)).toEqual(listTree(bare.dir).map(withoutLinks))
      expect(sealed.leftovers()).toEqual([])
    },
  )

  it.each(committable)("does the same where the layer is to stay as it is: $name", ({ before, run }) => {
    using taken = new Workspace(before)
    using copied = new Workspace(before)
    const { result } = copied.layer({ mode, run, commit: { dataDir: copied.dataDir, copies: true } })
    expect(result).toEqual({ ok: true })
    expect(taken.layer({ mode, run, commit: { dataDir: taken.dataDir } }).result).toEqual({ ok: true })
    expect(listTree(taken.dir)).toEqual(listTree(copied.dir))
  })

  it.each([true, false])("moves a layer's files only where it goes with its commit (it stays: %s)", (copies) => {
    using workspace = new Workspace("echo old > a")
    const commit = { dataDir: workspace.dataDir, ...(copies ? { copies } : {}) }
    expect(workspace.layer({ mode, run: "echo new > a; mkdir d; echo b > d/b", commit }).result).toEqual({ ok: true })
    const layer = readdirSync(workspace.base).find((name) => name.startsWith("ws.layer-")) as string
    const left = listTree(join(workspace.base, layer, "upper")).map((line) => line.split(" ")[0])
    expect(left).toEqual(copies ? ["a", "d", "d/b"] : ["d"])
    expect(readFileSync(join(workspace.dir, "d/b"), "utf8")).toBe("b\n")
  })

  it.each(refusable)("refuses the whole layer: $name", ({ before, run }) => {
    using workspace = new Workspace(before)
    const was = listTree(workspace.dir, { times: true })
    const { result } = workspace.layer({
      mode,
      run: `echo fine > fine; ${run}`,
      commit: { dataDir: workspace.dataDir },
    })
    expect(result).toMatchObject({ ok: false, reason: "failed" })
    expect(listTree(workspace.dir, { times: true })).toEqual(was)
  })

  it("works where content must be staged in the workspace, and leaves no folder of it", () => {
    using workspace = new Workspace("mkdir -p d/e; echo 1 > d/1; echo 2 > d/e/2")
    const { result } = workspace.layer({
      mode,
      run: "rm -r d/e; echo x > d/1; mkdir -p n/m; echo 3 > n/m/3",
      commit: { dataDir: workspace.farDataDir },
    })
    expect(result).toEqual({ ok: true })
    expect(workspace.leftovers()).toEqual([])
    expect(listTree(workspace.dir).map((line) => line.split(" ")[0])).toEqual(["d", "d/1", "n", "n/m", "n/m/3"])
  })

  it("lands the time that a tool gave to a file, the file otherwise as it was, unless somebody else changed it", () => {
    using workspace = new Workspace("mkdir d; echo a > d/a; chmod 640 d/a; touch -d 2020-01-01 d/a")
    const run = "touch -d '2001-02-03 04:05:06.123456789 UTC' d/a"
    const before = listTree(workspace.dir)
    const { result } = workspace.layer({ mode, run, commit: { dataDir: workspace.dataDir } })
    expect(result).toEqual({ ok: true })
    expect(statSync(join(workspace.dir, "d/a"), { bigint: true }).mtimeNs).toBe(981_173_106_123_456_789n)
    expect(listTree(workspace.dir)).toEqual(before)
    const raced = workspace.layer({
      mode,
      run: "touch d/a",
      meanwhile: "echo other > d/a",
      commit: { dataDir: workspace.dataDir },
    })
    expect(raced.result).toMatchObject({ ok: false, reason: "conflict" })
  })

  it("gives new entries to the workspace's owner and keeps times of new files", () => {
    using workspace = new Workspace("true")
    workspace.layer({
      mode,
      run: "mkdir d; echo a > d/a; touch -d '2001-02-03 04:05:06.123456789 UTC' d/a; ln -s a d/l",
      commit: { dataDir: workspace.dataDir },
    })
    const stats = statSync(join(workspace.dir, "d/a"), { bigint: true })
    expect([Number(stats.uid), Number(stats.gid)]).toEqual([OWNER, OWNER_GROUP])
    expect(stats.mtimeNs).toBe(981_173_106_123_456_789n)
    expect(statSync(join(workspace.dir, "d")).uid).toBe(OWNER)
  })

  it("takes files from before 1970", () => {
    using workspace = new Workspace("true")
    const { result } = workspace.layer({
      mode,
      run: "echo a > a; touch -d '1960-01-01 00:00:00.5 UTC' a",
      commit: { dataDir: workspace.dataDir },
    })
    expect(result).toEqual({ ok: true })
    expect(statSync(join(workspace.dir, "a")).mtime.getUTCFullYear()).toBeLessThan(1961)
  })

  it("gives no mode or attribute to names of a file that lie outside the workspace", () => {
    using workspace = new Workspace("echo a > a; chmod 600 a")
    const outside = join(workspace.dataDir, "..", `outside-${mode}`)
    linkSync(join(workspace.dir, "a"), outside)
    const { result } = workspace.layer({ mode, run: "chmod 777 a", commit: { dataDir: workspace.dataDir } })
    expect(result).toEqual({ ok: true })
    expect(statSync(join(workspace.dir, "a")).mode & 0o777).toBe(0o777)
    expect(statSync(outside).mode & 0o777).toBe(0o600)
    rmSync(outside)
  })

  it("keeps hard links among committed files", () => {
    using workspace = new Workspace("echo a > a")
    workspace.layer({ mode, run: "echo x >> a; ln a b; mkdir d; ln a d/c", commit: { dataDir: workspace.dataDir } })
    expect(statSync(join(workspace.dir, "a")).nlink).toBe(3)
    expect(statSync(join(workspace.dir, "d/c")).ino).toBe(statSync(join(workspace.dir, "a")).ino)
  })

  it("never shares an inode with a file that the call did not change", () => {
    using workspace = new Workspace("echo a > a")
    workspace.layer({ mode, run: "ln a b", commit: { dataDir: workspace.dataDir } })
    expect(statSync(join(workspace.dir, "a")).nlink).toBe(1)
  })

  it("keeps the holes of sparse files", () => {
    using workspace = new Workspace("true")
    workspace.layer({ mode, run: "truncate -s 300M s; echo end >> s", commit: { dataDir: workspace.dataDir } })
    const stats = statSync(join(workspace.dir, "s"))
    expect(stats.size).toBe(300 * 2 ** 20 + 4)
    expect(stats.blocks * 512).toBeLessThan(2 ** 20)
  })

  it("refuses a layer with more changes than the cap, and takes one with just as many", () => {
    using workspace = new Workspace("true")
    const run = "for i in 1 2 3 4 5; do echo $i > $i; done"
    expect(workspace.layer({ mode, run, limits: { maxEffects: 4 } }).refusal).toBe("too-many-effects")
    expect(workspace.layer({ mode, run, limits: { maxEffects: 5 } }).writes?.effects).toHaveLength(5)
    expect(workspace.layer({ mode, run, limits: { maxDigestBytes: 9 } }).refusal).toBe("too-many-bytes")
    expect(workspace.layer({ mode, run, limits: { maxDigestBytes: 10 } }).writes?.bytes).toBe(10)
    expect(
      workspace.layer({ mode, run: "mkdir -p aaaa/bbbb; : > aaaa/bbbb/c", limits: { maxPathBytes: 10 } }).refusal,
    ).toBe("path-too-long")
    expect(
      workspace.layer({ mode, run: "mkdir -p aaaa/bbbb; : > aaaa/bbbb/c", limits: { maxPathBytes: 11 } }).writes
        ?.effects,
    ).toHaveLength(3)
  })
})

/** A link to an unchanged file is parted on purpose. */
const withoutLinks = (line: string): string => line.replace(/ = .*$/, "")
