/** A folder's print: the same while nothing below it changed, another one after any change, and none where nobody can tell. */
import {
  chmodSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { holdsAny, treePrint } from "../../../src/sandbox/effects/tree-print.ts"
import { openFolder } from "../../../src/sandbox/folder.ts"
import { until } from "../../support/sealed.ts"

let folder: string
const at = (...names: readonly string[]): string => join(folder, ...names)
const print = async (most = 1000): Promise<string | undefined> => {
  using opened = openFolder(folder)
  return await treePrint(opened, most)
}

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "caisson-print-"))
  mkdirSync(at("deep/er"), { recursive: true })
  writeFileSync(at("deep/er/file"), "content")
  writeFileSync(at("top"), "top")
  symlinkSync("top", at("link"))
})
afterEach(() => {
  rmSync(folder, { recursive: true, force: true })
})

/** The file system tells instants apart that lie a tick or so from each other. */
const aTickLater = async (): Promise<void> => {
  const before = statSync(folder, { bigint: true }).mtimeNs
  const probe = `${folder}.probe`
  try {
    await until(() => {
      writeFileSync(probe, "x")
      return statSync(probe, { bigint: true }).mtimeNs > before + 20_000_000n
    }, "a later instant")
  } finally {
    rmSync(probe, { force: true })
  }
}

describe("a folder's print", () => {
  it("is the same while it is only read", async () => {
    const before = await print()
    expect(before).toMatch(/^[0-9a-f]{64}$/)
    readFileSync(at("deep/er/file"))
    expect(await print()).toBe(before)
  })
  it.each<readonly [string, () => void]>([
    ["a file was written with as many bytes", () => writeFileSync(at("deep/er/file"), "CONTENT")],
    [
      "a file was written and its time put back",
      () => {
        const { atime, mtime } = statSync(at("deep/er/file"))
        writeFileSync(at("deep/er/file"), "CONTENT")
        utimesSync(at("deep/er/file"), atime, mtime)
      },
    ],
    ["a file came", () => writeFileSync(at("deep/new"), "")],
    ["a file went", () => rmSync(at("top"))],
    [
      "a file came and went",
      () => {
        writeFileSync(at("deep/er/new"), "")
        rmSync(at("deep/er/new"))
      },
    ],
    ["a mode changed", () => chmodSync(at("deep/er/file"), 0o600)],
    ["a folder was renamed", () => renameSync(at("deep/er"), at("deep/other"))],
    [
      "a link leads elsewhere",
      () => {
        rmSync(at("link"))
        symlinkSync("deep", at("link"))
      },
    ],
    ["a file has another name, too", () => linkSync(at("top"), at("deep/top"))],
  ])("is another one after %s", async (_what, change) => {
    await aTickLater()
    const before = await print()
    await aTickLater()
    change()
    expect(await print()).not.toBe(before)
  })
  it("is there up to so many entries, and not for one more", async () => {
    expect(await print(5)).toBeDefined()
    expect(await print(4)).toBeUndefined()
  })
  it("follows no link out of the folder", async () => {
    const outside = mkdtempSync(join(tmpdir(), "caisson-outside-"))
    try {
      symlinkSync(outside, at("out"))
      const before = await print()
      writeFileSync(join(outside, "new"), "")
      expect(await print()).toBe(before)
    } finally {
      rmSync(outside, { recursive: true, force: true })
    }
  })
})

describe("whether anything lies in a folder", () => {
  it("is told by the paths that count, and taken for granted where there are too many", async () => {
    expect(await holdsAny(folder, 1000)).toBe(true)
    expect(await holdsAny(folder, 1000, (path) => path === "deep/er/file")).toBe(true)
    expect(await holdsAny(folder, 1000, (path) => path.startsWith("other"))).toBe(false)
    expect(await holdsAny(folder, 4, () => false)).toBe(true)
    mkdirSync(at("empty"))
    expect(await holdsAny(at("empty"), 10)).toBe(false)
  })
})
