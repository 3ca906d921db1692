import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  locateSystemProgram,
  locateVendoredProgram,
  systemFolders,
} from "../../../../src/host/drivers/program/program.ts"

let root = ""
let bin = ""
let bundle = ""
const put = (file: string, content: string, mode = 0o755): string => {
  mkdirSync(path.dirname(file), { recursive: true })
  writeFileSync(file, content)
  chmodSync(file, mode)
  return file
}

beforeAll(() => {
  root = realpathSync(mkdtempSync(path.join(tmpdir(), "caisson-program-")))
  bin = path.join(root, "bin")
  bundle = path.join(root, "bundle")
  put(path.join(bin, "native"), "\x7fELF")
  put(path.join(bin, "plain"), "text", 0o644)
  put(path.join(bin, "script"), `#!${bin}/native -x\n`)
  put(path.join(bin, "env"), "\x7fELF")
  put(path.join(bin, "by-env"), `#! ${bin}/env native\n`)
  put(path.join(bin, "by-env-s"), `#!${bin}/env -S A=1 native --flag\n`)
  put(path.join(bin, "chained"), `#!${bin}/script\n`)
  put(path.join(bin, "by-missing"), `#!${bin}/gone\n`)
  put(path.join(bin, "by-env-missing"), `#!${bin}/env gone\n`)
  put(path.join(bin, "by-relative"), "#!native\n")
  put(path.join(bin, "no-interpreter"), "echo done\n")
  put(path.join(bin, "by-crlf"), `#!${bin}/native\r\necho done\r\n`)
  put(path.join(bin, "loop"), `#!${bin}/loop\n`)
  mkdirSync(path.join(bin, "folder"))
  symlinkSync("native", path.join(bin, "linked"))
  symlinkSync("nowhere", path.join(bin, "dangling"))
  put(path.join(bundle, "bin/own"), "\x7fELF")
  put(path.join(bundle, "bin/data"), "x", 0o600)
  put(path.join(root, "bundle-evil"), "\x7fELF")
  symlinkSync(path.join(bin, "native"), path.join(bundle, "out"))
  symlinkSync("bin/own", path.join(bundle, "in"))
})
afterAll(() => rmSync(root, { recursive: true }))

const found = (name: string): readonly string[] | string => {
  const located = locateSystemProgram(name, [bin])
  return located.ok
    ? [located.program.path, ...located.program.interpreters].map((each) => path.relative(bin, each))
    : located.reason
}
const brought = (relative: string): string => {
  const located = locateVendoredProgram(relative, bundle, [bin])
  return located.ok ? path.relative(root, located.program.path) : located.reason
}

describe("a system program", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, string, readonly string[]]>([
    ["is found by name", "native", ["native"]],
    ["is found behind a link", "linked", ["native"]],
    ["brings its interpreter", "script", ["script", "native"]],
    ["brings env and what env starts", "by-env", ["by-env", "env", "native"]],
    ["understands env -S with assignments", "by-env-s", ["by-env-s", "env", "native"]],
    ["brings a chain of interpreters", "chained", ["chained", "script", "native"]],
  ])("%s", (_, name, expected) => {
    expect(found(name)).toEqual(expected)
  })

  // biome-ignore format: a table reads by rows
  it.each([
    ["is missing", "gone", /is not in/], ["is not executable", "plain", /is not in/], ["is a folder", "folder", /is not in/], ["is a dangling link", "dangling", /is not in/],
    ["lies elsewhere", "/etc/native", /is not in/], ["is a relative path", "./native", /is not in/], ["is only dots", "..", /not a program/], ["is empty", "", /not a program/],
    ["needs an interpreter that is missing", "by-missing", /interpreter .*gone is not there/], ["needs a program of env that is missing", "by-env-missing", /`gone` is not in/],
    ["has a relative interpreter", "by-relative", /not an absolute path/], ["names no interpreter", "no-interpreter", /begins with no `#!` line/],
    ["has lines that end as on Windows", "by-crlf", /Unix line endings/], ["is its own interpreter", "loop", /too long/],
  ])("is refused when it %s", (_, name, reason) => {
    expect(found(name)).toMatch(reason)
  })

  it("is found by an absolute path into one of the folders", () => {
    expect(found(path.join(bin, "native"))).toEqual(["native"])
  })

  it("takes the first folder that has it and says where it was found", () => {
    const other = path.join(root, "other")
    put(path.join(other, "native"), "\x7fELF")
    const located = locateSystemProgram("linked", [other, bin])
    expect(located.ok && located.program).toMatchObject({
      name: "linked",
      found: path.join(bin, "linked"),
      path: path.join(bin, "native"),
    })
    const first = locateSystemProgram("native", [other, bin])
    expect(first.ok && first.program.path).toBe(path.join(other, "native"))
  })

  it("never comes from the caller's PATH", () => {
    const before = process.env["PATH"]
    process.env["PATH"] = bin
    try {
      expect(locateSystemProgram("by-env").ok).toBe(false)
      expect(locateSystemProgram("sh").ok).toBe(true)
    } finally {
      process.env["PATH"] = before
    }
    expect(systemFolders.every((folder) => path.isAbsolute(folder))).toBe(true)
  })
})

describe("a vendored program", () => {
  it("is found in the driver's folder", () => {
    expect(brought("./bin/own")).toBe("bundle/bin/own")
    expect(brought("in")).toBe("bundle/bin/own")
    const located = locateVendoredProgram("bin/own", bundle, [bin])
    expect(located.ok && located.program.bundle).toBe(bundle)
  })
  // biome-ignore format: a table reads by rows
  it.each([
    ["climbs out", "../bin/native", /leads out/], ["names a neighbour with the same prefix", "../bundle-evil", /leads out/], ["is absolute", "/bin/sh", /leads out/],
    ["is a link that leads out", "out", /leads out/], ["is the folder itself", ".", /leads out/], ["is missing", "bin/none", /is not there/], ["is a folder", "bin", /regular file/],
    ["is not executable", "bin/data", /is not executable/],
  ])("is refused when it %s", (_, relative, reason) => {
    expect(brought(relative)).toMatch(reason)
  })
})
