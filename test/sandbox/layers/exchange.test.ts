/** Files handed over and taken back, by their parts: what is opened, what is copied, what is left. */
import { execFileSync } from "node:child_process"
import {
  closeSync,
  constants,
  linkSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { copyBytes } from "../../../src/sandbox/layers/exchange/copy.ts"
import { NotStaged, stageInputs } from "../../../src/sandbox/layers/exchange/stage.ts"
import { takeOutputs } from "../../../src/sandbox/layers/exchange/take.ts"
import { sightOf } from "../../../src/sandbox/layers/hosted/sight.ts"
import { Tree } from "../../../src/sandbox/layers/hosted/tree.ts"

let folder: string
const open: number[] = []
const at = (...names: readonly string[]): string => join(folder, ...names)
const opened = (path: string, flags = constants.O_RDONLY): number => {
  const fd = openSync(path, flags)
  open.push(fd)
  return fd
}
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-exchange-"))
  for (const name of ["work", "work/in", "scratch", "scratch/files"]) mkdirSync(at(name))
})
afterEach(() => {
  for (const fd of open.splice(0)) closeSync(fd)
  rmSync(folder, { recursive: true })
})

const chunk = Buffer.alloc(600_000, "a")

describe("a copy", () => {
  const copy = (most: number) => copyBytes(opened(at("from")), opened(at("to"), constants.O_RDWR), most)
  beforeEach(() => {
    writeFileSync(at("from"), chunk)
    writeFileSync(at("to"), "")
  })

  it.each([
    [chunk.length - 1, { ok: false, fault: "too_large" }],
    [chunk.length, { ok: true, size: chunk.length }],
    [chunk.length + 1, { ok: true, size: chunk.length }],
  ])("of a file may have at most so many bytes: %i", async (most, expected) => {
    expect(await copy(most)).toMatchObject(expected)
  })
  it("writes nothing of a file that is larger than it may be, however little of it is there", async () => {
    truncateSync(at("from"), 2 ** 40)
    expect(await copy(2 ** 30)).toEqual({ ok: false, fault: "too_large" })
    expect(statSync(at("to")).size).toBe(0)
  })
  it("of a file that grows, shrinks or is written to meanwhile is none", async () => {
    const changes: readonly (() => void)[] = [
      () => writeSync(opened(at("from"), constants.O_WRONLY | constants.O_APPEND), "b"),
      () => truncateSync(at("from"), 10),
      () => void writeSync(opened(at("from"), constants.O_WRONLY), "b", 0),
    ]
    for (const change of changes) {
      writeFileSync(at("from"), chunk)
      utimesSync(at("from"), 1, 1)
      const copying = copy(2 ** 30)
      change()
      expect(await copying).toEqual({ ok: false, fault: "changed" })
    }
  })
})

describe("handing over", () => {
  const stage = async (path: string, { deny = [] as readonly string[], most = 2 ** 20, writable = false } = {}) => {
    const tree = new Tree(opened(at("work")), sightOf({ read: ["**"], deny }, []), undefined)
    const inputs = [{ name: "source", path, writable }]
    try {
      return await stageInputs({ tree, folder: opened(at("scratch/files")), inputs, owner: undefined, most })
    } catch (error) {
      if (error instanceof NotStaged) return error.file.fault
      throw error
    }
  }
  beforeEach(() => writeFileSync(at("work/in/a"), "text"))

  it("copies the bytes of a file, under its key, with the mode that the contract says", async () => {
    expect(await stage("in/a")).toMatchObject([{ name: "source", path: "in/a", size: 4 }])
    expect(readFileSync(at("scratch/files/source"), "utf8")).toBe("text")
    expect(statSync(at("scratch/files/source")).mode & 0o777).toBe(0o444)
    rmSync(at("scratch/files/source"))
    await stage("in/a", { writable: true })
    expect(statSync(at("scratch/files/source")).mode & 0o777).toBe(0o644)
  })

  const cases: readonly (readonly [what: string, fault: string, path: string, make: () => void, how: object])[] = [
    ["nothing there", "absent", "in/b", () => undefined, {}],
    ["no folder there", "absent", "no/b", () => undefined, {}],
    ["a file for a folder", "not_a_folder", "in/a/b", () => undefined, {}],
    ["a link out", "link", "in/l", () => symlinkSync("/etc/hostname", at("work/in/l")), {}],
    ["a link to nowhere", "link", "in/l", () => symlinkSync("nowhere", at("work/in/l")), {}],
    ["a link within", "link", "in/l", () => symlinkSync("a", at("work/in/l")), {}],
    ["a linked folder", "link", "l/a", () => symlinkSync("in", at("work/l")), {}],
    ["a link around", "link", "in/l", () => symlinkSync("l", at("work/in/l")), {}],
    ["a pipe", "not_a_file", "in/p", () => void execFileSync("mkfifo", [at("work/in/p")]), {}],
    ["a folder", "not_a_file", "in", () => undefined, {}],
    ["what is denied", "hidden", "in/a", () => undefined, { deny: ["in/**"] }],
    ["what is denied by its name", "hidden", "in/a", () => undefined, { deny: ["**/a"] }],
    ["another call's commit", "hidden", ".caisson-tx1/a", () => mkdirSync(at("work/.caisson-tx1")), {}],
    ["too many bytes", "too_large", "in/a", () => undefined, { most: 3 }],
  ]
  it.each(cases)("refuses %s", async (_what, fault, path, make, how) => {
    make()
    expect(await stage(path, how)).toBe(fault)
  })

  it("gives what was opened, whatever lies at its path afterwards", async () => {
    writeFileSync(at("work/in/a"), chunk)
    const staging = stage("in/a")
    renameSync(at("work/in/a"), at("work/in/moved"))
    symlinkSync("/etc/hostname", at("work/in/a"))
    // A rename is a change of the file's own record, so that it is not passed off as either.
    expect(await staging).toBe("changed")
  })
})

describe("taking", () => {
  const put: { path: string; text: string }[] = []
  const take = async () => {
    put.splice(0)
    const [taken] = await takeOutputs({
      left: { root: opened(at("scratch")), folder: "files" },
      outputs: [{ name: "out", path: "result.txt" }],
      staged: [],
      sink: {
        async put(path, from) {
          const text = readFileSync(from, "utf8")
          put.push({ path, text })
          return { ok: true, size: text.length, digest: "sha256:x" }
        },
      },
      most: 2 ** 20,
    })
    return taken
  }
  const file = (...names: readonly string[]): string => at("scratch", "files", ...names)

  it("takes a plain file, with however many names", async () => {
    writeFileSync(file("out"), "text")
    linkSync(file("out"), file("twin"))
    expect(await take()).toMatchObject({ state: "written" })
    expect(put).toEqual([{ path: "result.txt", text: "text" }])
  })
  it("takes nothing where nothing is", async () => {
    expect(await take()).toMatchObject({ state: "absent" })
    rmSync(at("scratch/files"), { recursive: true })
    expect(await take()).toMatchObject({ state: "absent" })
  })
  it.each<readonly [string, () => void]>([
    ["a symbolic link", () => symlinkSync("/etc/hostname", file("out"))],
    ["a folder", () => mkdirSync(file("out"))],
    ["a pipe", () => void execFileSync("mkfifo", [file("out")])],
    [
      "its folder was replaced",
      () => {
        rmSync(at("scratch/files"), { recursive: true })
        symlinkSync("/etc", at("scratch/files"))
      },
    ],
  ])("opens nothing else, and says what it is: %s", async (why, make) => {
    make()
    expect(await take()).toMatchObject({ state: "refused", why })
    expect(put).toEqual([])
  })
})
