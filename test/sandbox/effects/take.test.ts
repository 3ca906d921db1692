import { execFileSync } from "node:child_process"
import {
  chmodSync,
  closeSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { takeFile } from "../../../src/sandbox/effects/commit/take.ts"
import { fromBuffer } from "../../../src/sandbox/effects/names.ts"
import { lgetxattr, llistxattr, lsetxattr } from "../../../src/linux/files.ts"
import { noRoot, testNeeding } from "../../support/needing.ts"

let folder = ""
let staging = -1
let from = ""
const root = process.getuid?.() === 0
const prefix = root ? "trusted" : "user"
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-take-"))
  staging = openSync(mkdtempSync(join(folder, "staging-")), "r")
  from = join(folder, "file")
  writeFileSync(from, "content")
})
afterEach(() => {
  closeSync(staging)
  rmSync(folder, { recursive: true })
})

const take = (to = staging) => {
  const finished: number[] = []
  const stats = lstatSync(from, { bigint: true })
  const place = { dir: to, name: fromBuffer(Buffer.from("s0")) }
  const how = takeFile(Buffer.from(from), stats, place, {
    prefix,
    finish: (fd) => finished.push(fd),
  })
  return { how, finished: finished.length, was: stats }
}
const taken = (): string => `/proc/self/fd/${staging}/s0`
const isLeft = (how = "left"): void => {
  expect(take()).toMatchObject({ how, finished: 0 })
  expect(existsSync(taken())).toBe(false)
  expect(readFileSync(from, "utf8")).toBe("content")
}

test("a plain file is the same one in its new place, with its mode, times and own attributes", () => {
  chmodSync(from, 0o640)
  utimesSync(from, 1_000_000, 2_000_000)
  lsetxattr(from, "user.mine", Buffer.from("value"))
  const { how, finished, was } = take()
  expect({ how, finished }).toEqual({ how: "taken", finished: 1 })
  const is = lstatSync(taken(), { bigint: true })
  expect([is.ino, is.mode, is.mtimeNs, is.atimeNs]).toEqual([was.ino, was.mode, was.mtimeNs, was.atimeNs])
  expect(lgetxattr(taken(), "user.mine")?.toString()).toBe("value")
  expect(existsSync(from)).toBe(false)
})

test("what the overlay noted of where it was copied from does not go with it", () => {
  lsetxattr(from, `${prefix}.overlay.origin`, Buffer.from("handle"))
  expect(take().how).toBe("taken")
  expect(llistxattr(taken())).toEqual([])
})

test("a file with another name is left: both names are to share one copy", () => {
  linkSync(from, join(folder, "twin"))
  isLeft()
})

test.each([0o4755, 0o2755, 0o1755])("a file with the bits of %o is left", (mode) => {
  chmodSync(from, mode)
  isLeft()
})

test("a file with any other note of the overlay is left", () => {
  lsetxattr(from, `${prefix}.overlay.other`, Buffer.from("y"))
  isLeft()
})

testNeeding("a file with an attribute that a commit does not carry is left", noRoot, () => {
  lsetxattr(from, "trusted.mark", Buffer.from("y"))
  isLeft()
})

test("a file with a flag that its owner gave it is left", () => {
  execFileSync("chattr", ["+d", from])
  isLeft()
})

test("a file that holds more of the disk than its content needs is left: its copy would not", () => {
  execFileSync("fallocate", ["--keep-size", "--length", "4MiB", from])
  isLeft()
})

test("a file with holes is taken with them", () => {
  truncateSync(from, 4 << 20)
  const { how, was } = take()
  expect(how).toBe("taken")
  expect(lstatSync(taken(), { bigint: true }).blocks).toBe(was.blocks)
})

test("a file of another file system is left, and so would be all that lies there", () => {
  const far = mkdtempSync("/dev/shm/caisson-take-")
  const to = openSync(far, "r")
  try {
    expect(take(to)).toMatchObject({ how: "elsewhere", finished: 0 })
    expect(readFileSync(from, "utf8")).toBe("content")
  } finally {
    closeSync(to)
    rmSync(far, { recursive: true })
  }
})

test("a name that is taken is not written over", () => {
  writeFileSync(taken(), "other")
  expect(() => take()).toThrow("EEXIST")
  expect(readFileSync(taken(), "utf8")).toBe("other")
})
