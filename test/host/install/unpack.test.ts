import { spawnSync } from "node:child_process"
import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { gzipSync, zstdCompressSync } from "node:zlib"
import { afterAll, describe, expect, it } from "vitest"
import { tarOf, type TarMember, zipWith, type ZipMember } from "../../support/archives.ts"
import { removeFolder } from "../../support/remove-folder.ts"

const unpacker = join(import.meta.dirname, "../../../src/runner/unpack.mjs")
const base = realpathSync(mkdtempSync(join(tmpdir(), "caisson-unpack-")))
afterAll(() => removeFolder(base))
let serial = 0

/** The unpacker as the host starts it, without the sandbox around it: what it refuses, it refuses by itself. */
const unpack = (bytes: Uint8Array, { program = "bin/tool", mebibytes = 16, files = 50 } = {}) => {
  serial += 1
  const outer = join(base, String(serial))
  const folder = join(outer, "layer")
  const scratch = mkdtempSync(join(base, "tmp-"))
  mkdirSync(folder, { recursive: true })
  const request = JSON.stringify({ program, bytes: mebibytes * 2 ** 20, files, depth: 8 })
  const { status, stderr } = spawnSync(process.execPath, [unpacker, request], {
    cwd: folder,
    input: bytes,
    env: { ...process.env, TMPDIR: scratch },
  })
  return { status, said: stderr.toString(), folder, beside: readdirSync(outer) }
}

const tool = { name: "bin/tool", content: "#!/bin/sh\necho 1.2.3\n" }
const xz = (bytes: Uint8Array): Uint8Array => spawnSync("xz", ["-c"], { input: bytes }).stdout
const bzip2 = (bytes: Uint8Array): Uint8Array => spawnSync("bzip2", ["-c"], { input: bytes }).stdout

describe("what is unpacked", () => {
  const tar = tarOf([
    { name: "bin/", type: "5" },
    { ...tool, mode: 0o644 },
    { name: "lib/a", content: "x".repeat(1000), mode: 0o644 },
    { name: "lib/b", type: "2", link: "a" },
    { name: "lib/c", type: "1", link: "lib/a" },
  ])
  it.each<[string, Uint8Array]>([
    ["tar", tar],
    ["tar.gz", gzipSync(tar)],
    ["tar.zst", zstdCompressSync(tar)],
    ["tar.xz", xz(tar)],
    ["tar.bz2", bzip2(tar)],
    [
      "zip",
      zipWith([
        { name: "bin/", mode: 0o040755, method: 0 },
        { ...tool, mode: 0o100644 },
        { name: "lib/a", content: "x".repeat(1000) },
        { name: "lib/b", content: "a", mode: 0o120777, method: 0 },
        { name: "lib/c", content: "x".repeat(1000), mode: 0 },
      ]),
    ],
  ])("a %s: files, folders and links that stay inside", (_, bytes) => {
    const { status, said, folder } = unpack(bytes)
    expect([status, said]).toEqual([0, ""])
    expect(readFileSync(join(folder, "bin/tool"), "utf8")).toBe(tool.content)
    expect(statSync(join(folder, "bin/tool")).mode & 0o777).toBe(0o755)
    expect(lstatSync(join(folder, "lib/b")).isSymbolicLink()).toBe(true)
    for (const name of ["a", "b", "c"]) expect(readFileSync(join(folder, "lib", name), "utf8")).toBe("x".repeat(1000))
    expect(statSync(join(folder, "lib/c")).nlink).toBe(1)
  })
  it.each<[string, Uint8Array]>([
    ["as it is", Buffer.from(tool.content)],
    ["packed by gzip", gzipSync(tool.content)],
    ["packed by xz", xz(Buffer.from(tool.content))],
  ])("a program by itself, %s", (_, bytes) => {
    const { status, folder } = unpack(bytes)
    expect(status).toBe(0)
    expect(readFileSync(join(folder, "bin/tool"), "utf8")).toBe(tool.content)
    expect(statSync(join(folder, "bin/tool")).mode & 0o777).toBe(0o755)
  })
  it("names that GNU and pax write long", () => {
    const long = `lib/${"n".repeat(150)}`
    const pax = `${`path=${long}2`.length + 5} path=${long}2\n`
    const { status, said, folder } = unpack(
      tarOf([
        tool,
        { name: "././@LongLink", type: "L", content: `${long}\0` },
        { name: "short", content: "1" },
        { name: "pax", type: "x", content: pax },
        { name: "short", content: "2" },
      ]),
    )
    expect([status, said]).toEqual([0, ""])
    expect([readFileSync(join(folder, long), "utf8"), readFileSync(join(folder, `${long}2`), "utf8")]).toEqual([
      "1",
      "2",
    ])
  })
})

const REFUSED: readonly [
  string,
  TarMember | readonly TarMember[],
  ZipMember | readonly ZipMember[] | undefined,
  RegExp,
][] = [
  ["leads out by `..`", { name: "../out", content: "1" }, { name: "../out", content: "1" }, /"..\/out" leads out/],
  ["leads out in the middle", { name: "a/../../out" }, { name: "a/../../out" }, /leads out of the archive/],
  ["has an absolute path", { name: "/tmp/caisson-out" }, { name: "/tmp/caisson-out" }, /absolute path/],
  [
    "is a link out",
    { name: "l", type: "2", link: "../../etc" },
    { name: "l", content: "../../etc", mode: 0o120777 },
    /the link "l" leads out/,
  ],
  [
    "is an absolute link",
    { name: "l", type: "2", link: "/etc/passwd" },
    { name: "l", content: "/etc/passwd", mode: 0o120777 },
    /leads out.*passwd/,
  ],
  ["is a hard link out", { name: "h", type: "1", link: "/etc/passwd" }, undefined, /hard link|absolute/],
  [
    "is a hard link to a link",
    [
      { name: "l", type: "2", link: "a" },
      { name: "h", type: "1", link: "l" },
    ],
    undefined,
    /is no file of the archive/,
  ],
  ["is a character device", { name: "d", type: "3" }, { name: "d", mode: 0o020666 }, /"d" is a device/],
  ["is a block device", { name: "d", type: "4" }, { name: "d", mode: 0o060666 }, /"d" is a device/],
  ["is a pipe", { name: "d", type: "6" }, { name: "d", mode: 0o010666 }, /"d" is a (?:device or a )?pipe/],
  ["is setuid", { name: "s", mode: 0o4755 }, { name: "s", mode: 0o104755 }, /"s" is setuid or setgid/],
  ["is setgid", { name: "s", mode: 0o2755 }, { name: "s", mode: 0o102755 }, /"s" is setuid or setgid/],
  ["has control characters", { name: "a\u001b[2Jb" }, { name: "a\u001b[2Jb" }, /holds control characters/],
  ["has a line end", { name: "a\nb" }, { name: "a\nb" }, /holds control characters/],
  ["has a backslash", { name: "a\\..\\b" }, { name: "a\\..\\b" }, /backslash/],
  [
    "is not UTF-8",
    { name: new Uint8Array([0x61, 0xff, 0xfe]) },
    { name: new Uint8Array([0x61, 0xff, 0xfe]) },
    /is not UTF-8/,
  ],
  ["is there twice", { name: "bin/tool" }, { name: "bin/tool" }, /is there twice/],
  ["differs in case alone", { name: "bin/TOOL" }, { name: "bin/TOOL" }, /differ in case alone/],
  [
    "differs in composition alone",
    [{ name: "\u00e9" }, { name: "e\u0301" }],
    [{ name: "\u00e9" }, { name: "e\u0301" }],
    /differ in case alone/,
  ],
  [
    "lies below a link",
    [{ name: "l", type: "2", link: "bin" }, { name: "l/x" }],
    [{ name: "l", content: "bin", mode: 0o120777 }, { name: "l/x" }],
    /lies below "l", which is a link/,
  ],
  ["lies below a file", { name: "bin/tool/x" }, { name: "bin/tool/x" }, /which is a file/],
  ["lies too deep", { name: "1/2/3/4/5/6/7/8/9" }, { name: "1/2/3/4/5/6/7/8/9" }, /too deep/],
  ["is sparse", { name: "s", type: "S" }, undefined, /a sparse file/],
  ["is of no known kind", { name: "s", type: "V" }, { name: "s", method: 99 }, /not known/],
]

describe("a member is refused that", () => {
  it.each(REFUSED)("%s", (_, inTar, inZip, message) => {
    const archives = [
      gzipSync(tarOf([tool, ...[inTar].flat()])),
      ...(inZip === undefined ? [] : [zipWith([tool, ...[inZip].flat()])]),
    ]
    for (const bytes of archives) {
      const { status, said, beside } = unpack(bytes)
      expect(said).toMatch(message)
      expect(said).toMatch(/^caisson: [^\n]*\n$/)
      expect(status).toBe(3)
      expect(beside).toEqual(["layer"])
      expect(existsSync("/tmp/caisson-out")).toBe(false)
    }
  })
})

describe("an archive is refused that", () => {
  const bomb = Buffer.alloc(17 * 2 ** 20)
  it.each<[string, Uint8Array, RegExp]>([
    ["is a bomb in gzip", gzipSync(tarOf([tool, { name: "big", content: bomb }])), /more than 16 MiB/],
    ["is a bomb behind its end", gzipSync(Buffer.concat([tarOf([tool]), bomb])), /more than 16 MiB/],
    ["is a bomb in zip", zipWith([tool, { name: "big", content: bomb }]), /more than 16 MiB/],
    [
      "says less than it holds",
      zipWith([tool, { name: "big", content: bomb, size: 10 }]),
      /"big" is not what the directory says/,
    ],
    [
      "is a bomb by sharing",
      zipWith([{ ...tool, content: "x" }, ...Array.from({ length: 40 }, (_, i) => ({ name: `n${i}`, sharing: 0 }))]),
      /overlaps another one/,
    ],
    ["is a bomb by itself", gzipSync(bomb), /more than 16 MiB/],
    [
      "holds too many members",
      tarOf([tool, ...Array.from({ length: 60 }, (_, i) => ({ name: `n${i}` }))]),
      /more than 50 members/,
    ],
    [
      "holds too many in zip",
      zipWith([tool, ...Array.from({ length: 60 }, (_, i) => ({ name: `n${i}` }))]),
      /more than 50 members/,
    ],
    ["is encrypted", zipWith([tool, { name: "a", flags: 1 }]), /"a" is encrypted/],
    [
      "has another name in its header",
      zipWith([tool, { name: "a", localName: "b" }]),
      /"a" is not what the directory says/,
    ],
    [
      "has a wrong checksum",
      zipWith([tool, { name: "a", content: "abc", crc: 1 }]),
      /"a" is not what the directory says/,
    ],
    [
      "ends in the middle",
      gzipSync(tarOf([tool, { name: "a", content: "x".repeat(5000) }]).subarray(0, 3000)),
      /ends in the middle/,
    ],
    ["ends before its end", tarOf([tool]).subarray(0, 1024), /ends before its end/],
    ["is cut off in gzip", gzipSync(tarOf([tool])).subarray(0, 60), /damaged, or ends in the middle/],
    ["is cut off in xz", xz(tarOf([tool])).subarray(0, 100), /damaged/],
    ["is cut off in zip", zipWith([tool]).subarray(0, 80), /ends before its end/],
    ["says a size that is none", tarOf([tool, { name: "a", size: 8 ** 11 - 1 }]), /more than 16 MiB/],
    ["is empty", Buffer.alloc(0), /it is empty/],
    ["holds no such program", tarOf([{ name: "other", content: "1" }]), /no program "bin\/tool"; it holds "other"/],
    ["has a folder for a program", tarOf([{ name: "bin/tool/", type: "5" }]), /no program "bin\/tool"/],
  ])("%s", (_, bytes, message) => {
    const { status, said, beside } = unpack(bytes)
    expect(said).toMatch(message)
    expect(status).toBe(3)
    expect(beside).toEqual(["layer"])
  })
})
