/** Layers that the host itself writes, for calls without a sandbox. */
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { lookAt } from "../../../src/sandbox/folder.ts"
import type { HostedLayer, HostedLayerOptions } from "../../../src/sandbox/layers/hosted/layer.ts"
import { createHostedLayers, type HostedLayers } from "../../../src/sandbox/layers/hosted/layers.ts"
import { noRoot, testNeeding } from "../../support/needing.ts"

let folder: string
let workspace: string
let layers: HostedLayers
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-hosted-")))
  workspace = join(folder, "work")
  mkdirSync(join(workspace, "notes"), { recursive: true })
  mkdirSync(join(folder, "data"))
  put("README.md", "read me\n")
  put("notes/old.txt", "old\n")
  layers = createHostedLayers(join(folder, "data"))
})
afterEach(async () => {
  await layers[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const put = (name: string, content: string): void => {
  mkdirSync(dirname(join(workspace, name)), { recursive: true })
  writeFileSync(join(workspace, name), content)
}
const content = (name: string): string => readFileSync(join(workspace, name), "utf8")
const open = (change: Partial<HostedLayerOptions> = {}): HostedLayer =>
  layers.open({
    workspace: lookAt(workspace),
    view: { read: ["**"], deny: [] },
    write: ["**"],
    limits: { diskBytes: 1 << 20 },
    signal: new AbortController().signal,
    ...change,
  })
const text = async (layer: HostedLayer, path: string): Promise<string> => {
  const answer = await layer.read(path, 1 << 20)
  return answer.ok ? answer.value.toString("utf8") : `(${answer.fault})`
}
const bytes = (value: string): Uint8Array => Buffer.from(value)

describe("what a call without a sandbox reads", () => {
  it("is its own layer first, then the workspace", async () => {
    const layer = open()
    expect(await text(layer, "README.md")).toBe("read me\n")
    expect(await layer.write("README.md", bytes("mine\n"))).toEqual({ ok: true, value: undefined })
    expect(await text(layer, "README.md")).toBe("mine\n")
    expect(content("README.md")).toBe("read me\n")
    await layer.discard()
  })
  it("is what its view shows: a hidden file and one that is not there answer the same", async () => {
    put("secret/key", "hush")
    put("src/a.ts", "a")
    symlinkSync("../secret/key", join(workspace, "src/link"))
    const layer = open({ view: { read: ["src/**"], deny: ["src/private/**"] }, write: [] })
    expect(await text(layer, "src/a.ts")).toBe("a")
    expect(await text(layer, "secret/key")).toBe("(hidden)")
    expect(await text(layer, "secret/none")).toBe("(hidden)")
    expect(await text(layer, "src/link")).toBe("(hidden)")
    expect(await text(layer, "src/private/none")).toBe("(hidden)")
    expect(await layer.list(".")).toEqual({ ok: true, value: [{ name: "src", kind: "folder" }] })
    expect(await layer.list("secret")).toEqual({ ok: false, fault: "hidden" })
    await layer.discard()
  })
  it("a denied folder hides all that is in it, for reading and for writing", async () => {
    put("vault/deep/key", "hush")
    const layer = open({ view: { read: ["**"], deny: ["vault"] } })
    expect(await text(layer, "vault/deep/key")).toBe("(hidden)")
    expect(await layer.write("vault/deep/key", bytes("x"))).toEqual({ ok: false, fault: "hidden" })
    expect(await layer.list(".")).toMatchObject({ value: [{ name: "README.md" }, { name: "notes" }] })
    await layer.discard()
  })
  it("follows links within the workspace and none out of it", async () => {
    writeFileSync(join(folder, "outside"), "outside")
    symlinkSync("notes/old.txt", join(workspace, "inner"))
    symlinkSync("../outside", join(workspace, "climbs"))
    symlinkSync(join(folder, "outside"), join(workspace, "absolute"))
    symlinkSync("..", join(workspace, "up"))
    symlinkSync("round", join(workspace, "round"))
    const layer = open()
    expect(await text(layer, "inner")).toBe("old\n")
    for (const path of [
      "climbs",
      "absolute",
      "up/outside",
      "round",
      "../outside",
      "/etc/passwd",
      "notes/../../outside",
    ])
      expect(await text(layer, path), path).toBe("(outside)")
    expect(await layer.write("climbs", bytes("x"))).toEqual({ ok: false, fault: "outside" })
    expect(readFileSync(join(folder, "outside"), "utf8")).toBe("outside")
    await layer.discard()
  })
  it("is bounded, however large a file says it is", async () => {
    put("huge", "")
    truncateSync(join(workspace, "huge"), 2 ** 40)
    const layer = open()
    expect(await layer.read("huge", 1000)).toEqual({ ok: false, fault: "too_large" })
    expect(await layer.write("huge", bytes("x"), { append: true })).toEqual({ ok: false, fault: "full" })
    expect(layer.exceeded).toBe(true)
    await layer.discard()
  })
  it("says what is no file, no folder, or not there", async () => {
    const layer = open()
    expect(await text(layer, "notes")).toBe("(not_a_file)")
    expect(await text(layer, "README.md/x")).toBe("(not_a_folder)")
    expect(await text(layer, "none/x")).toBe("(absent)")
    expect(await layer.write("none/x", bytes("x"))).toEqual({ ok: false, fault: "absent" })
    expect(await layer.write("notes", bytes("x"))).toEqual({ ok: false, fault: "not_a_file" })
    expect(await layer.stat("notes/old.txt")).toEqual({ ok: true, value: { kind: "file", size: 4 } })
    await layer.discard()
  })
  testNeeding("is what the workspace's owner may read, also where the host is root", noRoot, async () => {
    put("roots", "private")
    chmodSync(join(workspace, "roots"), 0o600)
    mkdirSync(join(workspace, "shut"), { mode: 0o700 })
    put("shut/file", "private")
    chownSync(workspace, 12345, 12345)
    chownSync(join(workspace, "notes/old.txt"), 12345, 12345)
    const layer = open()
    expect(await text(layer, "roots")).toBe("(forbidden)")
    expect(await text(layer, "shut/file")).toBe("(forbidden)")
    expect(await layer.write("README.md", bytes("x"))).toEqual({ ok: false, fault: "forbidden" })
    expect(await layer.write("notes/new.txt", bytes("x"))).toEqual({ ok: false, fault: "forbidden" })
    expect(await layer.write("notes/old.txt", bytes("x"))).toMatchObject({ ok: true })
    expect(await layer.write("new.txt", bytes("x"))).toMatchObject({ ok: true })
    const sealed = await layer.seal()
    expect(await sealed?.commit()).toEqual({ ok: true })
    expect([statSync(join(workspace, "new.txt")).uid, statSync(join(workspace, "notes")).uid]).toEqual([12345, 0])
  })
})

describe("what it writes", () => {
  it("is read as effects and committed as a sandbox's layer is", async () => {
    chmodSync(join(workspace, "notes"), 0o2775)
    chmodSync(join(workspace, "notes/old.txt"), 0o640)
    const layer = open()
    await layer.write("notes/old.txt", bytes("more\n"), { append: true })
    await layer.write("notes/new.txt", bytes("new\n"))
    const sealed = await layer.seal()
    expect(sealed?.writes.effects).toMatchObject([
      { kind: "create", path: "notes/new.txt", size: 4, mode: { after: 0o644 } },
      { kind: "modify", path: "notes/old.txt", size: 9 },
    ])
    expect(sealed?.writes.effects).toHaveLength(2)
    expect(await sealed?.commit()).toEqual({ ok: true })
    expect([content("notes/old.txt"), content("notes/new.txt")]).toEqual(["old\nmore\n", "new\n"])
    expect(statSync(join(workspace, "notes/old.txt")).mode & 0o777).toBe(0o640)
  })
  it("is gone without a trace when it is thrown away", async () => {
    const layer = open()
    await layer.write("notes/new.txt", bytes("new\n"))
    const sealed = await layer.seal()
    sealed?.discard()
    expect(readdirSync(join(workspace, "notes"))).toEqual(["old.txt"])
    await layers[Symbol.asyncDispose]()
    expect(readdirSync(join(folder, "data", "layers"))).toEqual([])
  })
  it("meets a change of the same file as a conflict, its removal too", async () => {
    for (const change of [() => put("notes/old.txt", "theirs\n"), () => rmSync(join(workspace, "notes/old.txt"))]) {
      const layer = open()
      expect(await text(layer, "notes/old.txt")).not.toBe("")
      await layer.write("notes/old.txt", bytes("mine\n"))
      change()
      const sealed = await layer.seal()
      expect(await sealed?.commit()).toEqual({ ok: false, reason: "conflict", paths: ["notes/old.txt"] })
      if (existsSync(join(workspace, "notes/old.txt"))) expect(content("notes/old.txt")).toBe("theirs\n")
    }
  })
  it("never leaves the workspace, whatever is swapped for a link meanwhile", async () => {
    const outside = join(folder, "outside")
    mkdirSync(outside)
    writeFileSync(join(outside, "old.txt"), "outside\n")
    const layer = open()
    const asked = [layer.read("notes/old.txt", 100), layer.write("notes/new.txt", bytes("x")), layer.list("notes")]
    renameSync(join(workspace, "notes"), join(folder, "away"))
    symlinkSync(outside, join(workspace, "notes"))
    for (const answer of await Promise.all(asked))
      if (answer.ok) expect(JSON.stringify(answer.value ?? "")).not.toContain("outside")
    expect(await text(layer, "notes/old.txt")).toBe("(outside)")
    expect(await layer.write("notes/two.txt", bytes("x"))).toEqual({ ok: false, fault: "outside" })
    await layer.seal().then(
      (sealed) => sealed?.commit(),
      () => undefined,
    )
    expect(readdirSync(outside)).toEqual(["old.txt"])
  })
  it("stops at the call's limit, and nothing of it is left", async () => {
    const layer = open({ limits: { diskBytes: 10 } })
    expect(await layer.write("a", bytes("12345"))).toMatchObject({ ok: true })
    expect(await layer.write("a", bytes("1234567890"))).toMatchObject({ ok: true })
    expect(await layer.write("b", bytes("1"))).toEqual({ ok: false, fault: "full" })
    expect(await layer.seal()).toBeUndefined()
  })
  it("ends with the call: nothing is read or written afterwards", async () => {
    const call = new AbortController()
    const layer = open({ signal: call.signal })
    await layer.write("a", bytes("x"))
    call.abort()
    expect(await layer.write("b", bytes("x"))).toEqual({ ok: false, fault: "ended" })
    expect(await layer.read("README.md", 100)).toEqual({ ok: false, fault: "ended" })
    await layer.discard()
    expect(readdirSync(workspace).sort()).toEqual(["README.md", "notes"])
  })
  it("goes through folders that are shut against writing, and leaves their modes", async () => {
    mkdirSync(join(workspace, "shut/inner"), { recursive: true })
    put("shut/inner/file", "a")
    chmodSync(join(workspace, "shut"), 0o555)
    const layer = open()
    expect(await layer.write("shut/inner/file", bytes("b"))).toMatchObject({ ok: true })
    expect(await layer.write("shut/inner/second", bytes("c"))).toMatchObject({ ok: true })
    expect(await layer.write("shut/file", bytes("c"))).toEqual({ ok: false, fault: "forbidden" })
    const sealed = await layer.seal()
    expect(sealed?.writes.effects.map(({ kind, path }) => `${kind} ${path}`)).toEqual([
      "modify shut/inner/file",
      "create shut/inner/second",
    ])
    expect(await sealed?.commit()).toEqual({ ok: true })
    expect(content("shut/inner/file")).toBe("b")
    chmodSync(join(workspace, "shut"), 0o755)
  })
})
