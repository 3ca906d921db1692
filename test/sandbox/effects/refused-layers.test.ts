import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { readWriteSet } from "../../../src/sandbox/effects/read.ts"
import { lsetxattr } from "../../../src/linux/syscalls.ts"
import { PlainLayers } from "./fixtures/plain-layer.ts"
import { summary } from "./fixtures/workspaces.ts"

/** The file below again, at another time: two writes in a row may fall into one tick of the file system's clock. */
const upperOf = (layers: PlainLayers): string => {
  const upper = join(layers.base, "upper")
  mkdirSync(join(upper, "d"), { recursive: true })
  writeFileSync(join(upper, "d/a"), "a")
  utimesSync(join(upper, "d/a"), 1, 1)
  return upper
}

describe("a layer that cannot be told truthfully", () => {
  it.each(["redirect", "metacopy"])("is refused: the overlay's %s attribute", async (name) => {
    using layers = new PlainLayers({ "d/a": "a" })
    const upper = upperOf(layers)
    lsetxattr(join(upper, "d"), `user.overlay.${name}`, Buffer.from("x"))
    const read = readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "user" })
    await expect(read).rejects.toMatchObject({ code: "unsupported-layer" })
  })

  it("is refused when it is the workspace itself", async () => {
    using layers = new PlainLayers({ a: "a" })
    const read = readWriteSet({ lower: layers.workspace, upper: layers.workspace, xattrPrefix: "user" })
    await expect(read).rejects.toMatchObject({ code: "same-directory" })
  })

  it("holds an effect that is refused when the tool set a name of the overlay's own", async () => {
    using layers = new PlainLayers({ "d/a": "a" })
    const upper = upperOf(layers)
    // What the kernel stores when a sandboxed program sets user.overlay.opaque.
    lsetxattr(join(upper, "d"), "user.overlay.overlay.opaque", Buffer.from("y"))
    const { effects } = await readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "user" })
    expect(effects).toMatchObject([
      { kind: "xattr", path: "d", refused: expect.stringContaining("overlay") },
      { kind: "touch", path: "d/a" },
    ])
  })
})

describe("attributes of the namespace that the overlay was not mounted with", () => {
  it("hide nothing of the folder below", async () => {
    using layers = new PlainLayers({ "d/a": "a", "d/b": "b" })
    const upper = upperOf(layers)
    lsetxattr(join(upper, "d"), "user.overlay.opaque", Buffer.from("y"))
    const asRoot = await readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "trusted" })
    expect(summary(asRoot)).toEqual(["xattr d", "touch d/a"])
    const asUser = await readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "user" })
    expect(summary(asUser)).toEqual(["touch d/a", "delete d/b"])
  })
})

describe("whiteouts kept in attributes", () => {
  it("are deletions where the folder says that it has some, and empty files elsewhere", async () => {
    using layers = new PlainLayers({ "d/a": "a", "d/b": "b", "e/c": "c" })
    const upper = join(layers.base, "upper")
    for (const dir of ["d", "e"]) mkdirSync(join(upper, dir), { recursive: true })
    for (const file of ["d/a", "e/c"]) {
      writeFileSync(join(upper, file), "")
      lsetxattr(join(upper, file), "user.overlay.whiteout", Buffer.from("y"))
    }
    lsetxattr(join(upper, "d"), "user.overlay.opaque", Buffer.from("x"))
    const writes = await readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "user" })
    expect(summary(writes)).toEqual(["delete d/a", "modify e/c"])
  })
})

describe("below a folder that takes a symlink's place", () => {
  it("nothing is compared with where the symlink led", async () => {
    using layers = new PlainLayers({ "elsewhere/a": "a" })
    symlinkSync("elsewhere", join(layers.workspace, "d"))
    const writes = await readWriteSet({ lower: layers.workspace, upper: upperOf(layers), xattrPrefix: "user" })
    expect(summary(writes)).toEqual(["delete d", "mkdir d", "create d/a"])
  })
})
