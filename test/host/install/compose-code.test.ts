/** The files of a composed driver: overlay, links, limits. */
import {
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { composedFiles, keyOfComposed, writeComposed } from "../../../src/host/install/methods/compose-code.ts"
import { NotALayer } from "../../../src/host/install/listing.ts"
import { codeLimits } from "../../../src/host/limits.ts"
import type { CodeSource } from "../../../src/manifest/types.ts"

let folder = ""
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-compose-")))
  mkdirSync(join(folder, "lib/deep"), { recursive: true })
  writeFileSync(join(folder, "lib/a.ts"), "a")
  writeFileSync(join(folder, "lib/deep/b.ts"), "b")
  writeFileSync(join(folder, "lib/c.md"), "c")
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const local = (path: string, more: Partial<Extract<CodeSource, { from: "local" }>> = {}): CodeSource => ({
  from: "local",
  bases: [join(folder, "nowhere"), folder],
  path,
  ...more,
})
const inline = (path: string, content: string): CodeSource => ({ from: "inline", path, content })
const names = (...sources: readonly CodeSource[]): readonly string[] => [...composedFiles(sources).keys()].sort()

it.each<[string, () => CodeSource, readonly string[]]>([
  ["a folder's files lie at the root", () => local("lib"), ["a.ts", "c.md", "deep/b.ts"]],
  ["or where they are put", () => local("lib", { as: "x" }), ["x/a.ts", "x/c.md", "x/deep/b.ts"]],
  ["those of a pattern alone", () => local("lib", { glob: "*.ts" }), ["a.ts", "deep/b.ts"]],
  ["of which a dot is a dot", () => local("lib", { glob: "?.md" }), ["c.md"]],
  ["a file keeps its path", () => local("lib/a.ts"), ["lib/a.ts"]],
  ["or gets another", () => local("lib/a.ts", { as: "tool.ts" }), ["tool.ts"]],
])("%s", (_what, source, expected) => {
  expect(names(source())).toEqual(expected)
})
it("the last source of a path wins, and what is written is what was found", async () => {
  const target = join(folder, "out")
  mkdirSync(target)
  const files = composedFiles([inline("a.ts", "first"), local("lib"), inline("deep/b.ts", "last")])
  await writeComposed(target, files, new AbortController().signal)
  expect(["a.ts", "deep/b.ts", "c.md"].map((name) => readFileSync(join(target, name), "utf8"))).toEqual([
    "a",
    "last",
    "c",
  ])
})
it("has another key once a file is another one, and the same while none is", () => {
  const sources = [local("lib"), inline("x.ts", "x")]
  const before = keyOfComposed(composedFiles(sources))
  expect(keyOfComposed(composedFiles(sources))).toBe(before)
  writeFileSync(join(folder, "lib/a.ts"), "A")
  expect(keyOfComposed(composedFiles(sources))).not.toBe(before)
  expect(keyOfComposed(composedFiles([local("lib"), inline("x.ts", "y")]))).not.toBe(
    keyOfComposed(composedFiles(sources)),
  )
})
it("follows no link, wherever it lies", () => {
  symlinkSync("/etc/passwd", join(folder, "lib/link"))
  expect(() => names(local("lib"))).toThrow(/no plain file/)
  expect(() => names(local("lib/link"))).toThrow(/a link leads to/)
  symlinkSync("/etc", join(folder, "etc"))
  expect(() => names(local("etc"))).toThrow(NotALayer)
  expect(() => names(local("etc/hostname"))).toThrow(/a link leads to/)
})
it("is refused beyond its limits, and where a path is a file and a folder at once", () => {
  const { files, bytes, depth } = codeLimits
  const many = (count: number): readonly CodeSource[] => Array.from({ length: count }, (_, i) => inline(`f${i}`, ""))
  expect(names(...many(files.value))).toHaveLength(files.value)
  expect(() => names(...many(files.value + 1))).toThrow(/more than 5000 files/)
  writeFileSync(join(folder, "big"), "")
  truncateSync(join(folder, "big"), bytes.value)
  expect(names(local("big"))).toEqual(["big"])
  expect(() => names(local("big"), inline("one", "x"))).toThrow(/bytes/)
  const deep = (levels: number): string => Array.from({ length: levels }, () => "d").join("/")
  mkdirSync(join(folder, "tree", deep(depth.value + 1)), { recursive: true })
  expect(() => names(local("tree"))).toThrow(/deeper/)
  expect(names(local(`tree/d`))).toEqual([])
  expect(() => names(inline("a", "x"), inline("a/b", "y"))).toThrow(/at once/)
  expect(() => names(local("lib", { glob: "*".repeat(20) }))).toThrow(/too many stars/)
  expect(() => names(local("absent"))).toThrow(/there is no absent/)
})
