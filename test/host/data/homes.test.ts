import { mkdirSync, mkdtempSync, readdirSync, realpathSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { homeFolder, originOf } from "../../../src/host/data/homes.ts"
import { workspaceId } from "../../../src/host/data/workspaces.ts"
import { type FolderIdentity, lookAt } from "../../../src/sandbox/folder.ts"

let folder: string
let data: string
let workspace: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-homes-")))
  data = join(folder, "data")
  workspace = join(folder, "work")
  mkdirSync(data)
  mkdirSync(workspace)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

describe("a workspace's id", () => {
  it("stays the same for the same folder, and when it is moved", () => {
    const id = workspaceId(data, lookAt(workspace))
    expect(workspaceId(data, lookAt(workspace))).toBe(id)
    renameSync(workspace, join(folder, "elsewhere"))
    expect(workspaceId(data, lookAt(join(folder, "elsewhere")))).toBe(id)
  })
  it("is another one for another folder at the same path", () => {
    const id = workspaceId(data, lookAt(workspace))
    renameSync(workspace, join(folder, "old"))
    mkdirSync(workspace)
    expect(workspaceId(data, lookAt(workspace))).not.toBe(id)
  })
  it("is another one for a folder that got the inode of one that was removed", () => {
    const seen: FolderIdentity = { path: workspace, dev: "1", ino: "2", birthNs: "3" }
    const id = workspaceId(data, seen)
    expect(workspaceId(data, { ...seen, birthNs: "4" })).not.toBe(id)
    expect(workspaceId(data, { ...seen, ino: "5" })).not.toBe(id)
    expect(workspaceId(data, { ...seen, dev: "6", path: "/elsewhere" })).not.toBe(id)
  })
  it("outlives a device that is numbered anew", () => {
    const seen: FolderIdentity = { path: workspace, dev: "1", ino: "2", birthNs: "3" }
    expect(workspaceId(data, { ...seen, dev: "9" })).toBe(workspaceId(data, seen))
  })
  it("is bound to the path as well where nobody knows when the folder was made", () => {
    const seen: FolderIdentity = { path: workspace, dev: "1", ino: "2", birthNs: "0" }
    expect(workspaceId(data, { ...seen, path: "/elsewhere" })).not.toBe(workspaceId(data, seen))
  })
  it("is not believed from a file that this host did not write", () => {
    workspaceId(data, lookAt(workspace))
    const [name] = readdirSync(join(data, "workspaces"))
    writeFileSync(join(data, "workspaces", "0".repeat(32)), "{}")
    writeFileSync(join(data, "workspaces", `${name}.x`), '{"id":"../../etc"}')
    renameSync(workspace, join(folder, "old"))
    mkdirSync(workspace)
    expect(workspaceId(data, lookAt(workspace))).toMatch(/^[0-9a-f-]{36}$/)
  })
})

describe("a driver's home", () => {
  const home = (change: { driver?: string; file?: string; user?: string } = {}): string =>
    homeFolder(data, "/catalogue", {
      driver: "gh@1",
      file: "/mine/gh/CLI.md",
      user: "alice",
      workspace: lookAt(workspace),
      ...change,
    })
  it("is not inherited by another manifest that claims the id, another major or another user", () => {
    const all = [home(), home({ file: "/theirs/gh/CLI.md" }), home({ driver: "gh@2" }), home({ user: "bob" })]
    expect(new Set(all).size).toBe(4)
    expect(home()).toBe(all[0])
  })
  it("stays with the catalogue's driver wherever the catalogue is installed", () => {
    expect(originOf("/catalogue", "/catalogue/gh/CLI.md")).toEqual(originOf("/opt/new", "/opt/new/gh/CLI.md"))
    expect(originOf("/catalogue", "/catalogue-2/gh/CLI.md")).toEqual(["file", "/catalogue-2/gh/CLI.md"])
  })
})
