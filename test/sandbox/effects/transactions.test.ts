import { spawnSync } from "node:child_process"
import { closeSync, mkdirSync, openSync, readdirSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { parseJournal } from "../../../src/sandbox/effects/commit/recovery/journal.ts"
import { withFolderLock } from "../../../src/sandbox/effects/commit/lock.ts"
import { recoverWorkspace } from "../../../src/sandbox/effects/commit/recovery/recover.ts"
import { openTxRoot } from "../../../src/sandbox/effects/commit/recovery/tx-root.ts"
import { folderKey, lookAt } from "../../../src/sandbox/folder.ts"
import { flock, LOCK } from "../../../src/linux/files.ts"
import { PlainLayers } from "./fixtures/plain-layer.ts"
import { listTree } from "./fixtures/tree.ts"

const identity = { ino: "1", mode: 0o100644, size: "1", mtimeNs: "-1" }
const folder = { path: "/w", dev: "1", ino: "2", birthNs: "3" }
const put = { kind: "put", path: "a", slot: 0, made: identity }
const attributes = {
  kind: "attributes",
  path: "a",
  was: identity,
  mode: { before: 0o644, after: 0o755 },
  xattrs: { before: {}, after: { "user.a": "eA==" } },
}
const journal = (operation: object, more: object = {}): object => ({
  version: 2,
  folder,
  operations: [operation],
  ...more,
})

const malformed: readonly (readonly [string, unknown])[] = [
  ["another version", journal(put, { version: 1 })],
  ["an unknown field", journal(put, { extra: 1 })],
  ["operations that are no list", journal(put, { operations: { length: 1 } })],
  ["an operation of no kind", journal({ ...put, kind: "link" })],
  ["a path that climbs", journal({ ...put, path: "a/../../b" })],
  ["an absolute path", journal({ ...put, path: "/etc/passwd" })],
  ["an empty path", journal({ ...put, path: "" })],
  ["a path spelled as no journal spells it", journal({ ...put, path: "\\x61" })],
  ["a path with a NUL", journal({ ...put, path: "a\0b" })],
  ["a slot that is a path", journal({ ...put, slot: "../../x" })],
  ["a slot below zero", journal({ ...put, slot: -1 })],
  ["a slot that is no whole number", journal({ ...put, slot: 0.5 })],
  ["an identity without an inode", journal({ ...put, made: { ...identity, ino: "x" } })],
  ["a mode beyond modes", journal({ ...attributes, mode: { before: 0o644, after: 0o1000000 } })],
  [
    "an attribute that no commit sets",
    journal({ ...attributes, xattrs: { before: {}, after: { "trusted.a": "eA==" } } }),
  ],
  [
    "an overlay's attribute",
    journal({ ...attributes, xattrs: { before: {}, after: { "user.overlay.opaque": "eQ==" } } }),
  ],
  ["the same path twice", journal(put, { operations: [put, put] })],
  ["a folder without an inode", journal(put, { folder: { ...folder, ino: 7 } })],
]

describe("a journal", () => {
  it("is read back as it was written", () => {
    for (const operation of [put, attributes, { ...put, kind: "replace", was: identity, tree: "a".repeat(64) }])
      expect(parseJournal(Buffer.from(JSON.stringify(journal(operation))))).toEqual(journal(operation))
  })
  it.each(malformed)("with %s is refused", (_, value) => {
    expect(() => parseJournal(Buffer.from(JSON.stringify(value)))).toThrow(/is not what a journal holds|twice/)
  })
})

describe("a transaction in the data folder that cannot be understood", () => {
  const name = (layers: PlainLayers): string =>
    `${folderKey(lookAt(layers.workspace))}-00000000-0000-4000-8000-000000000000`
  const plant: Readonly<Record<string, (at: string) => void>> = {
    "is cut off": (at) => writeFileSync(join(at, "journal"), "{"),
    "is not a journal": (at) => writeFileSync(join(at, "journal"), "null"),
    "has a fifo for a journal": (at) => void spawnSync("mkfifo", [join(at, "journal")]),
    "has a link for a journal": (at) => symlinkSync("/etc/passwd", join(at, "journal")),
    "has a folder for a journal": (at) => mkdirSync(join(at, "journal")),
    "is larger than any": (at) => {
      writeFileSync(join(at, "journal"), "")
      truncateSync(join(at, "journal"), 300 * 2 ** 20)
    },
    "names a place that is none of ours": (at) => writeFileSync(join(at, "place"), '{"name":"../../etc"}'),
  }
  it.each(Object.keys(plant))("because it %s is set aside once, said, and in no later call's way", async (why) => {
    using layers = new PlainLayers({ a: "a" })
    const at = join(layers.txRoot, name(layers))
    mkdirSync(join(at, "slots"), { recursive: true })
    plant[why]?.(at)
    const was = listTree(layers.workspace, { times: true })
    const recover = () => recoverWorkspace({ workspace: layers.workspace, txRoot: layers.txRoot })
    const found = await recover()
    expect(found).toMatchObject({
      undone: 0,
      foreign: [],
      malformed: [{ at: join(layers.txRoot, `bad-${name(layers)}`) }],
    })
    expect(await recover()).toEqual({ finished: 0, undone: 0, foreign: [], malformed: [] })
    expect(listTree(layers.workspace, { times: true })).toEqual(was)
    expect(await layers.begin({ a: "A" })()).toEqual({ ok: true })
    expect(readdirSync(layers.txRoot)).toEqual([`bad-${name(layers)}`])
  })
})

describe("the lock of a folder", () => {
  it("is not the workspace's, which any of its users may hold", async () => {
    using layers = new PlainLayers({ a: "a" })
    const fd = openSync(layers.workspace, "r")
    try {
      flock(fd, LOCK.EXCLUSIVE)
      expect(await layers.begin({ a: "A" })({ waitMs: 0 })).toEqual({ ok: true })
    } finally {
      closeSync(fd)
    }
  })

  it("is waited for until the caller gives up, and leaves nothing when it goes", async () => {
    using layers = new PlainLayers({ a: "a" })
    const root = openTxRoot(layers.txRoot)
    const commit = layers.begin({ a: "A" })
    try {
      await withFolderLock(root, folderKey(lookAt(layers.workspace)), {}, async () => {
        const cancel = new AbortController()
        const waiting = commit({ signal: cancel.signal })
        cancel.abort()
        expect(await waiting).toMatchObject({
          ok: false,
          reason: "failed",
          message: expect.stringContaining("cancelled"),
        })
        expect(await commit({ waitMs: 20 })).toMatchObject({
          ok: false,
          message: expect.stringContaining("another commit"),
        })
      })
      expect(await commit()).toEqual({ ok: true })
      expect(readdirSync(layers.txRoot)).toEqual([])
    } finally {
      closeSync(root)
    }
  })
})
