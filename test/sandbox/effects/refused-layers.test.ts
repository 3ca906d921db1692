import { mkdirSync, symlinkSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { readWriteSet } from "../../../src/sandbox/effects/read.ts"
import { lsetxattr } from "../../../src/linux/files.ts"
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

/** A list as the kernel stores it; `named` is a user beside owner, group and everybody else. */
const listNaming = (named: number, permissions: number): Buffer => {
  const nobody = 0xffffffff
  const rows = [
    [0x01, 6, nobody],
    [0x02, permissions, named],
    [0x04, 4, nobody],
    [0x10, 6, nobody],
    [0x20, 0, nobody],
  ] as const
  const bytes = Buffer.alloc(4 + 8 * rows.length)
  bytes.writeUInt32LE(2)
  for (const [index, [tag, bits, id]] of rows.entries()) {
    bytes.writeUInt16LE(tag, 4 + 8 * index)
    bytes.writeUInt16LE(bits, 6 + 8 * index)
    bytes.writeUInt32LE(id, 8 + 8 * index)
  }
  return bytes
}

describe("an access control list that names another user", () => {
  const [ACCESS, DEFAULT] = ["system.posix_acl_access", "system.posix_acl_default"]
  const read = (layers: PlainLayers, upper: string) =>
    readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "user" })
  const refused = expect.stringContaining("gives user 1001 access")

  it("is never committed where the tool added it: on a new file, a changed one, a folder, or by the root's own list", async () => {
    using layers = new PlainLayers({ old: "old", "d/a": "a" })
    const upper = join(layers.base, "upper")
    mkdirSync(join(upper, "d"), { recursive: true })
    mkdirSync(join(upper, "new"))
    for (const file of ["made", "old"]) {
      writeFileSync(join(upper, file), "new")
      lsetxattr(join(upper, file), ACCESS, listNaming(1001, 6))
    }
    for (const folder of ["d", "new"]) lsetxattr(join(upper, folder), DEFAULT, listNaming(1001, 6))
    lsetxattr(upper, DEFAULT, listNaming(1001, 6))
    writeFileSync(join(upper, "inherits"), "it")
    const { effects } = await read(layers, upper)
    expect(effects).toMatchObject([
      { kind: "xattr", path: "d", refused },
      { kind: "create", path: "inherits", refused },
      { kind: "create", path: "made", refused },
      { kind: "mkdir", path: "new", refused },
      { kind: "modify", path: "old", refused },
    ])
  })

  it("is kept where the path had it, or its folder gives it to what is made there, with no more rights", async () => {
    using layers = new PlainLayers({ old: "old", "d/a": "a", more: "more" })
    for (const file of ["old", "more"]) lsetxattr(join(layers.workspace, file), ACCESS, listNaming(1001, 4))
    lsetxattr(join(layers.workspace, "d"), DEFAULT, listNaming(1001, 6))
    const upper = join(layers.base, "upper")
    mkdirSync(join(upper, "d"), { recursive: true })
    lsetxattr(join(upper, "d"), DEFAULT, listNaming(1001, 6))
    writeFileSync(join(upper, "d/made"), "in it")
    for (const [file, permissions] of [
      ["old", 4],
      ["more", 6],
    ] as const) {
      writeFileSync(join(upper, file), "new")
      lsetxattr(join(upper, file), ACCESS, listNaming(1001, permissions))
    }
    const { effects } = await read(layers, upper)
    expect(effects.map(({ kind, path, refused: why }) => [kind, path, why !== undefined])).toEqual([
      ["create", "d/made", false],
      ["modify", "more", true],
      ["modify", "old", false],
    ])
  })
})
