import {
  appendFileSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, expect, it } from "vitest"
import { type LoadManifests, rememberManifests } from "../../../src/host/assemble/known-manifests.ts"
import { hostLimits } from "../../../src/host/limits.ts"
import { loadFound } from "../../../src/manifest/read/discover.ts"
import { findManifests } from "../../../src/manifest/read/find.ts"
import type { LoadResult } from "../../../src/manifest/types.ts"

const catalogue = fileURLToPath(new URL("../../../manifests", import.meta.url))
const fixtures = fileURLToPath(new URL("../../../fixtures/manifests", import.meta.url))
let data: string
let loads: number
const counted: LoadManifests = (found, options) => {
  loads += 1
  return loadFound(found, options)
}
const load = (...paths: string[]): readonly LoadResult[] =>
  rememberManifests(data, counted)(findManifests(paths), { mode: "compat" })
const kept = (): readonly string[] => readdirSync(join(data, "manifests")).map((name) => join(data, "manifests", name))
const isDeeplyFrozen = (value: unknown): boolean =>
  value === null || typeof value !== "object" || (Object.isFrozen(value) && Object.values(value).every(isDeeplyFrozen))

beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), "caisson-known-"))
  loads = 0
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

it.each([
  ["the catalogue", catalogue],
  ["good, lenient and refused manifests", fixtures],
])("gives of %s the second time what it gave the first time, without loading it again", (_name, folder) => {
  const first = load(folder)
  const second = load(folder)
  expect(loads).toBe(1)
  expect(first.length).toBeGreaterThan(10)
  expect(second).toStrictEqual(first)
  expect(isDeeplyFrozen(second)).toBe(true)
})

it("keeps what it remembers from everybody but its owner", () => {
  load(catalogue)
  expect(statSync(join(data, "manifests")).mode & 0o777).toBe(0o700)
  expect(kept().map((file) => statSync(file).mode & 0o777)).toEqual([0o600])
})

it("loads anew when one byte of one manifest differs, even beyond the front matter", () => {
  const folder = join(data, "folder")
  cpSync(catalogue, folder, { recursive: true })
  const [first] = load(folder)
  const file = first?.ok === true ? first.manifest.source.file : ""
  appendFileSync(file, "\n")
  load(folder)
  expect(loads).toBe(2)
})

it("tells the same bytes in another mode or at another path apart", () => {
  const folder = join(data, "folder")
  cpSync(catalogue, folder, { recursive: true })
  load(catalogue)
  load(folder)
  const strict = rememberManifests(data, counted)(findManifests([catalogue]), { mode: "strict" })
  expect(loads).toBe(3)
  expect(strict).toStrictEqual(loadFound(findManifests([catalogue]), { mode: "strict" }))
})

it.each([
  ["cut short", (text: string) => text.slice(0, -1)],
  ["changed", (text: string) => text.replace('"compat"', '"strict"')],
  ["empty", () => ""],
  ["not JSON", () => "\n{"],
])("passes over an entry that is %s", (_how, damage) => {
  const first = load(catalogue)
  const [file = ""] = kept()
  writeFileSync(file, damage(readFileSync(file, "utf8")))
  expect(load(catalogue)).toStrictEqual(first)
  expect(loads).toBe(2)
  load(catalogue)
  expect(loads).toBe(2)
})

it("keeps nothing that would not come back as it was", () => {
  const odd = [{ ok: false, file: "/x", kind: "unknown", diagnostics: [{ at: -0 }] }] as unknown as LoadResult[]
  const remembering = rememberManifests(data, () => odd)
  expect(remembering(findManifests([catalogue]), { mode: "compat" })).toBe(odd)
  expect(readdirSync(data)).toEqual([])
})

it("loads all the same where nothing can be kept", () => {
  writeFileSync(join(data, "manifests"), "in the way")
  expect(load(catalogue)).toStrictEqual(loadFound(findManifests([catalogue]), { mode: "compat" }))
})

it("forgets the oldest when there are too many", () => {
  const most = hostLimits.knownManifests.value
  for (let index = 0; index <= most; index += 1) {
    const folder = join(data, `folder-${index}`)
    mkdirSync(folder)
    writeFileSync(join(folder, "TOOL.md"), "---\n---\n")
    load(folder)
  }
  expect(loads).toBe(most + 1)
  expect(kept()).toHaveLength(most)
})
