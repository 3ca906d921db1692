import { createHash } from "node:crypto"
import { existsSync, lstatSync, readFileSync, renameSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { before, run } from "../../chaos/mutations.ts"
import { listTree } from "../effects/fixtures/tree.ts"
import { modes, Workspace } from "../effects/fixtures/workspaces.ts"
import { heldWith, HeldWorkspace } from "./held-layers.ts"

const small =
  "mkdir -p a/b gone; echo one > a/one; echo two > a/b/two; echo x > gone/x; echo link > target; ln -s target link"
const changes =
  "echo ONE > a/one; echo new > a/b/new; rm -r gone; mkdir made; echo in > made/in; ln -sfn a link; chmod 600 a/b/two"

/** Every entry of the layer is an entry of what it changes: all there is to edit. */
const edits: readonly (readonly [string, (upper: string) => void])[] = [
  [
    "other bytes of the same length, with the time set back",
    (upper) => {
      const file = join(upper, "a/one")
      const { atime, mtime } = statSync(file)
      writeFileSync(file, "TWO\n")
      utimesSync(file, atime, mtime)
    },
  ],
  ["one more file", (upper) => writeFileSync(join(upper, "a/planted"), "x")],
  ["a file moved elsewhere", (upper) => renameSync(join(upper, "made/in"), join(upper, "made/out"))],
  ["another time", (upper) => utimesSync(join(upper, "a/one"), 1, 1)],
]

describe.each(modes)("a layer held by one process and written by another, in %s mode", (mode) => {
  it("gives the bytes that a commit at once would have given", () => {
    using atOnce = new Workspace(before)
    expect(atOnce.layer({ mode, run, commit: { dataDir: atOnce.dataDir } }).result).toEqual({ ok: true })
    using workspace = heldWith(before, run, mode)
    const was = listTree(workspace.dir)
    expect(was).not.toEqual(listTree(atOnce.dir))
    expect(lstatSync(workspace.description).mode & 0o777).toBe(0o600)
    expect(workspace.commit().result).toEqual({ ok: true })
    expect(listTree(workspace.dir)).toEqual(listTree(atOnce.dir))
    expect(workspace.stands).toBe(true)
  })

  it.each([
    ["a file that it changes was changed", "echo other > a/one", ["a/one"]],
    ["a file that it changes was changed and changed back", "echo other > a/one; echo one > a/one", ["a/one"]],
    ["a file that it changes was put anew as it was", "cp -p a/one b; mv b a/one", ["a/one"]],
    ["a file that it makes is there", "echo mine > a/b/new", ["a/b/new"]],
    ["a folder that it removes has something new", "echo more > gone/more", ["gone"]],
    ["a folder that it removes has something changed", "echo more > gone/x", ["gone"]],
    ["a folder on the way is another one", "cp -rp a c; mv a d; mv c a", ["a"]],
    ["a folder on the way is a link elsewhere", "mv a c; ln -s c a", ["a"]],
    ["a link that it leads elsewhere was led elsewhere", "ln -sfn gone link", ["link"]],
    ["a mode that it changes was changed", "chmod 640 a/b/two", ["a/b/two"]],
  ])("is a conflict where %s meanwhile, and nothing is written", (_what, meanwhile, paths) => {
    using workspace = heldWith(small, changes, mode)
    workspace.shell(meanwhile)
    const was = listTree(workspace.dir)
    const { result } = workspace.commit()
    expect(result).toMatchObject({ ok: false, reason: "conflict", paths: expect.arrayContaining(paths) as unknown })
    expect(listTree(workspace.dir)).toEqual(was)
    expect(workspace.stands).toBe(false)
  })

  it("is a conflict also where the clock went back meanwhile, so that the change looks older than the call", () => {
    using workspace = heldWith(small, changes, mode)
    workspace.shell("echo other > a/one")
    // The same as a clock that went back: every change since lies before the instant that the call began.
    const text = JSON.stringify({ ...workspace.readDescription(), since: { sinceNs: "9000000000000000000" } })
    writeFileSync(workspace.description, text)
    const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`
    expect(workspace.commit(undefined, digest).result).toMatchObject({ reason: "conflict", paths: ["a/one"] })
  })

  it("is none where something else changed meanwhile", () => {
    using workspace = heldWith(small, changes, mode)
    workspace.shell("echo other > elsewhere; echo more > a/more; mkdir b")
    expect(workspace.commit().result).toEqual({ ok: true })
    expect(readFileSync(join(workspace.dir, "a/one"), "utf8")).toBe("ONE\n")
    expect(readFileSync(join(workspace.dir, "a/more"), "utf8")).toBe("more\n")
  })

  it.each(edits)("is refused where the layer was edited meanwhile: %s", (_what, edit) => {
    using workspace = heldWith(small, changes, mode)
    const was = listTree(workspace.dir)
    edit(join(workspace.at, "upper"))
    expect(workspace.commit().result).toMatchObject({ ok: false, reason: "altered" })
    expect(listTree(workspace.dir)).toEqual(was)
  })

  it("is refused where its description was edited meanwhile", () => {
    using workspace = heldWith(small, changes, mode)
    const was = listTree(workspace.dir)
    writeFileSync(workspace.description, readFileSync(workspace.description, "utf8").replace("a/one", "a/two"))
    expect(workspace.commit().result).toMatchObject({ ok: false, reason: "altered" })
    expect(listTree(workspace.dir)).toEqual(was)
  })

  it.each([
    ["another folder", "mkdir"],
    ["a link to the folder itself", "link"],
    ["nothing", "nothing"],
  ])("is refused where %s is at the workspace's path", (_what, how) => {
    using workspace = heldWith(small, changes, mode)
    const moved = `${workspace.dir}-moved`
    renameSync(workspace.dir, moved)
    const was = listTree(moved)
    if (how === "mkdir") workspace.shellIn(workspace.base, `mkdir ws; ${small.replaceAll(/^/g, "cd ws; ")}`)
    if (how === "link") workspace.shellIn(workspace.base, "ln -s ws-moved ws")
    const here = existsSync(workspace.dir) ? listTree(workspace.dir) : []
    expect(workspace.commit().result).toMatchObject({ ok: false, reason: "replaced" })
    expect(listTree(moved)).toEqual(was)
    expect(existsSync(workspace.dir) ? listTree(workspace.dir) : []).toEqual(here)
  })

  it.each([
    ["after a reboot that numbered the disks anew", "another-boot", { ok: true }],
    ["but not where the disk is another one in the same boot", undefined, { ok: false, reason: "replaced" }],
  ])("is written %s", (_when, boot, result) => {
    using workspace = heldWith(small, changes, mode)
    const description = workspace.readDescription()
    const folder = { ...(description["folder"] as object), dev: "987654321" }
    const text = JSON.stringify({ ...description, folder, ...(boot === undefined ? {} : { boot }) })
    writeFileSync(workspace.description, text)
    const digest = `sha256:${createHash("sha256").update(text).digest("hex")}`
    expect(workspace.commit(undefined, digest).result).toMatchObject(result)
  })

  it("is not kept where it is larger than it may be, and stays what it was", () => {
    using workspace = new HeldWorkspace(small, mode)
    const report = workspace.hold("head -c 200000 /dev/urandom > a/big", 100_000)
    expect(report.held).toMatchObject({ ok: false, message: expect.stringContaining("100000 bytes") as unknown })
    expect(existsSync(join(workspace.at, "upper"))).toBe(false)
  })
})
