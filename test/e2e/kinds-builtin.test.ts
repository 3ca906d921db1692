/** Drivers of kind builtin, through a real host: functions of the host itself, and an embedder's own. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { createHost } from "../../src/host/index.ts"
import type { BuiltinFunction } from "../../src/host/builtin-function.ts"
import type { Envelope, HostOptions } from "../../src/host/types.ts"
import { digestOfFolder, openFolder, openWorld, type World } from "./host-world.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openSeeds } from "../support/seeds.ts"

const worlds: World[] = []
const folders: string[] = []
afterEach(async () => {
  for (const world of worlds.splice(0)) await world[Symbol.asyncDispose]()
  for (const folder of folders.splice(0)) removeFolder(folder)
})

const driver = (fields: string, tools: readonly string[]): string => `---
name: Notes
id: notes
description: Notes, by functions of the host.
version: 1.0.0
kind: builtin
${fields}implements:
${tools.map((tool) => `  - { tool: ${tool}, version: ^1.0.0${tool === "note.add" ? ", metadata: { builtin: { host_id: HOST } }" : ""} }\n`).join("")}---
`
const noteAdd = `---
name: Add a note
id: note.add
description: Adds a note.
version: 1.0.0
inputs: { type: object, properties: { text: { type: string } } }
outputs: {}
idempotent: false
mutates: ["workspace:/notes/**"]
requires: { network: [] }
approval: on-mutate
risk_level: 1
timeout_ms: 20000
---
`

interface Opening extends HostOptions {
  readonly config?: string
  readonly hostId?: string
  readonly fields?: string
  readonly tools?: readonly string[]
}
const open = async ({ config = "", hostId, fields = "", tools = ["note.add"], ...options }: Opening = {}) => {
  const manifests = openFolder()
  folders.push(manifests)
  mkdirSync(join(manifests, "note.add"))
  writeFileSync(join(manifests, "note.add", "TOOL.md"), noteAdd)
  writeFileSync(
    join(manifests, "DRIVER.md"),
    driver(fields, tools)
      .replace("metadata: { builtin: { host_id: HOST } }", (all) =>
        hostId === undefined ? "tags: []" : all.replace("HOST", hostId),
      )
      .replace(", tags: []", ""),
  )
  // A function of the program's own serves no driver of a folder that nobody vouches for.
  const world =
    options.builtins === undefined
      ? await openWorld(config, { manifests: [manifests], ...options })
      : await openWorld(`${config}manifests: ["${manifests}"]\n`, { manifests: [], ...options })
  worlds.push(world)
  return world
}
const files = { driver: "caisson-files" } as const
const lastReceipt = ({ data }: World): { metadata: Record<string, unknown> } =>
  JSON.parse(
    readFileSync(join(data, "audit", "audit-log.jsonl"), "utf8")
      .trim()
      .split("\n")
      .at(-1) ?? "",
  ) as { metadata: Record<string, unknown> }
const code = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)

describe("files, in the host itself", () => {
  it("a declared change is judged and committed, and the receipt says that no program ran", async () => {
    const world = await open()
    const envelope = await world.call("file.edit", { path: "notes/old.txt", old: "old", new: "new" })
    expect(envelope).toMatchObject({
      ok: true,
      driver: "caisson-files@1",
      value: { replaced: 1, first_line: 1 },
      effects: [{ kind: "modify", path: "notes/old.txt", declared: true, committed: true }],
    })
    expect(readFileSync(join(world.workspace, "notes/old.txt"), "utf8")).toBe("new\n")
    expect(lastReceipt(world).metadata).toMatchObject({
      driver: { kind: "builtin" },
      program: { started: false },
      backend: "none",
      builtin: "file.edit",
      sealed: true,
      ending: "answer",
      effects_committed: true,
    })
  })
  it("a plan changes nothing, and shows what would change", async () => {
    const world = await open()
    const before = digestOfFolder(world.workspace)
    const envelope = await world.call("file.write", { path: "new.txt", content: "x" }, { ...files, plan: true })
    expect(envelope).toMatchObject({ ok: true, effects: [{ kind: "create", path: "new.txt", committed: false }] })
    expect(digestOfFolder(world.workspace)).toBe(before)
  })
  it("a change that needs a yes is held, and committed once a person gives it", async () => {
    const world = await open()
    const envelope = await world.call(
      "file.write",
      { path: "new.txt", content: "held\n" },
      { ...files, approved: false },
    )
    expect(code(envelope)).toBe("approval_required")
    expect(readdirSync(world.workspace)).not.toContain("new.txt")
    const [held] = await world.host.approvals()
    const approved = await world.host.decide(held?.id ?? "", "approve")
    expect(approved).toMatchObject({ ok: true })
    expect(readFileSync(join(world.workspace, "new.txt"), "utf8")).toBe("held\n")
  })
  it("what the host itself keeps in a workspace is nobody's to write", async () => {
    const world = await open()
    const envelope = await world.call("file.write", { path: ".caisson-tx-x", content: "x" }, files)
    expect(envelope.ok).toBe(false)
    expect(readdirSync(world.workspace)).not.toContain(".caisson-tx-x")
  })
  it("a link out of the workspace is refused, for reading and for writing", async () => {
    const world = await open()
    writeFileSync(join(world.folder, "outside"), "outside")
    symlinkSync("../outside", join(world.workspace, "link"))
    expect(code(await world.call("file.read", { path: "link" }, files))).toBe("caisson:outside")
    expect(code(await world.call("file.write", { path: "link", content: "x" }, files))).toBe("caisson:outside")
    expect(readFileSync(join(world.folder, "outside"), "utf8")).toBe("outside")
  })
  it("a huge file is not read, and says so", async () => {
    const world = await open()
    writeFileSync(join(world.workspace, "huge"), "")
    truncateSync(join(world.workspace, "huge"), 2 ** 40)
    expect(code(await world.call("file.read", { path: "huge" }, files))).toBe("limit_exceeded")
    expect(await world.call("text.search", { pattern: "x" }, files)).toMatchObject({
      ok: true,
      notes: ["1 files of more than 16777216 bytes were left out"],
    })
  })
  it("an edit of text that is not there, or there twice, changes nothing", async () => {
    const world = await open()
    writeFileSync(join(world.workspace, "twice"), "a a\n")
    expect(code(await world.call("file.edit", { path: "twice", old: "b", new: "" }))).toBe("caisson:not_found")
    expect(code(await world.call("file.edit", { path: "twice", old: "a", new: "b" }))).toBe("caisson:ambiguous")
    expect(await world.call("file.edit", { path: "twice", old: "a", new: "$&", all: true })).toMatchObject({ ok: true })
    expect(readFileSync(join(world.workspace, "twice"), "utf8")).toBe("$& $&\n")
  })
  it("lists and searches as ripgrep does: ignored and hidden files left out, sorted, globs kept", async () => {
    const world = await open()
    const put = (name: string, text: string): void => writeFileSync(join(world.workspace, name), text)
    mkdirSync(join(world.workspace, ".git"))
    mkdirSync(join(world.workspace, "build"))
    mkdirSync(join(world.workspace, "notes", "deep"))
    put(".gitignore", "build/\n*.log\n!kept.log\na?.txt\n/top.txt\n# not a rule\n")
    put("build/out.txt", "hull")
    put("a.log", "hull")
    put("top.txt", "hull")
    put("notes/top.txt", "hull")
    put("kept.log", "hull")
    put(".hidden", "hull")
    put("notes/deep/ab.txt", "hull")
    put("notes/deep/abc.txt", "Hull\r\nno\nhull hull\n")
    put("notes/.ignore", "old.*\n")
    put("binary", "hull\0hull")
    symlinkSync("kept.log", join(world.workspace, "link"))
    for (const input of [
      {},
      { path: "notes" },
      { glob: "*.txt" },
      { hidden: true },
      { glob: "!*.{log,md}" },
      { path: "notes/deep/abc.txt" },
    ])
      expect(await world.call("files.list", input, files), JSON.stringify(input)).toMatchObject({
        ok: true,
        value: ((await world.call("files.list", input, { driver: "ripgrep" })) as { value?: string }).value,
      })
    for (const input of [
      { pattern: "h.ll" },
      { pattern: "HULL", ignore_case: true, literal: true },
      { pattern: "^(?:no|x)$", path: "notes" },
      { pattern: "hull", glob: "*.log" },
    ]) {
      const theirs = (await world.call(
        "text.search",
        { ...input, glob: "glob" in input ? input.glob : "!binary" },
        { driver: "ripgrep" },
      )) as { value?: string }
      expect(
        await world.call("text.search", { ...input, glob: "glob" in input ? input.glob : "!binary" }, files),
        JSON.stringify(input),
      ).toMatchObject({ ok: true, value: theirs.value })
    }
  })
  it("a pattern that takes forever in other engines is an ordinary one, and other calls go on beside it", async () => {
    const world = await open()
    writeFileSync(join(world.workspace, "long"), `${"a".repeat(100_000)}\n`.repeat(5))
    const search = world.call("text.search", { pattern: "(a*)*b|(a|aa)+$c" }, files)
    expect(await world.call("file.read", { path: "README.md" }, files)).toMatchObject({ ok: true })
    expect(await search).toMatchObject({ ok: true, value: "" })
    const huge = await world.call("text.search", { pattern: "(x{900}y{900}){2}z{900}" }, files)
    expect(["input_invalid", "ok"]).toContain(code(huge))
    expect(code(await world.call("text.search", { pattern: "(" }, files))).toBe("input_invalid")
  })
  it("a cancelled call stops, and leaves the workspace as it was", async () => {
    const world = await open()
    for (let index = 0; index < 300; index += 1)
      writeFileSync(join(world.workspace, `${index}.txt`), "some words in a line\n".repeat(2000))
    const before = digestOfFolder(world.workspace)
    const cancel = new AbortController()
    const search = world.call(
      "text.search",
      { pattern: "(some|words|in|a|line| )+x" },
      { ...files, signal: cancel.signal },
    )
    setImmediate(() => cancel.abort())
    expect(code(await search)).toBe("cancelled")
    expect(digestOfFolder(world.workspace)).toBe(before)
  })
  it("`why` and `tools` know it; it serves by itself what no program is there for", async () => {
    const world = await open()
    const why = await world.host.why({
      tool: "file.edit",
      input: { path: "a", old: "b", new: "c" },
      workspace: world.workspace,
    })
    expect(why).toMatchObject({ selected: "caisson-files@1", argv: ["builtin", "file.edit"], egress: [] })
    const read = await world.host.why({ tool: "file.read", input: { path: "README.md" }, workspace: world.workspace })
    expect(read.selected).toBe("cat@1")
    expect(read.rows.map((row) => row.driver)).toContain("caisson-files@1")
    const listed = (await world.host.tools()).find(({ contract }) => contract.id === "file.read")
    expect(listed?.drivers).toEqual(expect.arrayContaining(["cat@1", "caisson-files@1"]))
  })
})

describe("an embedder's own function", () => {
  it("is out of reach of a folder that nobody vouches for, under whatever contract of its own", async () => {
    const heard: unknown[] = []
    const world = await open({
      hostId: "deploy.run",
      manifests: [],
      builtins: { "deploy.run": ({ input }) => void heard.push(input) },
    })
    const stranger = openFolder()
    folders.push(stranger)
    mkdirSync(join(stranger, "note.add"))
    writeFileSync(join(stranger, "note.add", "TOOL.md"), noteAdd)
    writeFileSync(join(stranger, "DRIVER.md"), driver("", ["note.add"]).replace("HOST", "deploy.run"))
    const own = { "deploy.run": ({ input }: { input: unknown }) => void heard.push(input) }
    await using host = await createHost({ data: join(world.folder, "other"), manifests: [stranger], builtins: own })
    const envelope = await host.call({ tool: "note.add", input: {}, workspace: world.workspace }, { approved: true })
    expect(code(envelope)).toBe("tool_unavailable")
    expect(heard).toEqual([])
  })
  it("is served by its tool's id; its change is judged and committed; its receipt says that it was not sealed", async () => {
    const world = await open({
      builtins: {
        "note.add": async ({ input: { text }, files: own }) => {
          await own.write("notes/new.txt", Buffer.from(`${text as string}\n`))
          return { read: ((await own.read("notes/new.txt", 100)) as { value: Buffer }).value.toString() }
        },
      },
    })
    expect(await world.call("note.add", { text: "hi" })).toMatchObject({
      ok: true,
      value: { read: "hi\n" },
      effects: [{ kind: "create", path: "notes/new.txt", declared: true, committed: true }],
    })
    expect(lastReceipt(world).metadata).toMatchObject({ builtin: "note.add", sealed: false })
  })
  it("that writes what its contract does not declare is refused, and undone", async () => {
    const world = await open({
      builtins: {
        "note.add": async ({ files: own }) => ((await own.write("README.md", Buffer.from("x"))).ok ? 1 : 2),
      },
    })
    const before = digestOfFolder(world.workspace)
    const envelope = await world.call("note.add", {})
    expect(code(envelope)).toBe("undeclared_write")
    expect(envelope.effects).toMatchObject([{ path: "README.md", declared: false, committed: false }])
    expect(digestOfFolder(world.workspace)).toBe(before)
  })
  it("sees no more than its driver's view", async () => {
    const world = await open({
      fields: "sandbox: { fs: { read: ['notes/**'], write: ['notes/**'], deny: ['notes/private/**'] } }\n",
      builtins: {
        "note.add": async ({ files: own }) => {
          const faults = ["README.md", "notes/private/key", "notes/old.txt"].map(
            async (path) => (await own.read(path, 100)).ok,
          )
          return Promise.all(faults)
        },
      },
    })
    mkdirSync(join(world.workspace, "notes/private"))
    writeFileSync(join(world.workspace, "notes/private/key"), "hush")
    expect(await world.call("note.add", {})).toMatchObject({ ok: true, value: [false, false, true] })
  })
  it("meets a change of the same file as a conflict", async () => {
    const world: World = await open({
      builtins: {
        "note.add": async ({ files: own }) => {
          await own.write("notes/old.txt", Buffer.from("mine"))
          writeFileSync(join(world.workspace, "notes/old.txt"), "theirs")
          return 1
        },
      },
    })
    expect(code(await world.call("note.add", {}))).toBe("conflict")
    expect(readFileSync(join(world.workspace, "notes/old.txt"), "utf8")).toBe("theirs")
  })
  it("that writes more than it may, throws, never ends or answers with no JSON fails, with nothing committed", async () => {
    const answers: Record<string, () => unknown> = {
      throws: () => {
        throw new RangeError("not today")
      },
      hangs: () => new Promise(() => undefined),
      odd: () => 1n,
      large: () => "x".repeat(2000),
    }
    const world = await open({
      config: "limits: { disk_mb: 1, wall_ms: 3000, output_kb: 1 }\n",
      builtins: {
        "note.add": async ({ input: { text }, files: own }) => {
          const content = Buffer.alloc(text === "full" ? 2_000_000 : 10)
          await own.write("notes/new.txt", content)
          return answers[text as string]?.() as never
        },
      },
    })
    const before = digestOfFolder(world.workspace)
    const ends = {
      full: "limit_exceeded",
      throws: "upstream_error",
      hangs: "timeout",
      odd: "output_parse_failed",
      large: "limit_exceeded",
    }
    for (const [text, expected] of Object.entries(ends)) {
      const envelope = await world.call("note.add", { text })
      expect(code(envelope), text).toBe(expected)
    }
    expect(digestOfFolder(world.workspace)).toBe(before)
  })
})

describe("`host_id`", () => {
  it("names this host, an alias of the operator's, or a function that the embedder gave; any other is not available", async () => {
    const given = { "note.add": () => "tool", "house:notes": () => "named" }
    for (const [hostId, config, expected] of [
      ["caisson", "", "tool"],
      ["note.add", "", "tool"],
      ["ship", "builtin_hosts: [ship]\n", "tool"],
      ["house:notes", "", "named"],
      ["ship", "", "tool_unavailable"],
    ] as const) {
      const world = await open({ hostId, config, builtins: given })
      const envelope = await world.call("note.add", {})
      expect(envelope.ok ? envelope.value : envelope.error.code, `${hostId} ${config}`).toBe(expected)
    }
  })
  it("of a driver holds for all of its tools: the specification's own, once its host is named and its functions are given", async () => {
    const manifests = openSeeds("aip-30")
    folders.push(manifests)
    const read: BuiltinFunction = async ({ input, files: own }) => {
      const file = await own.read(input["path"] as string, 1_000)
      return file.ok ? file.value.toString("utf8") : file.fault
    }
    const unused = (): never => {
      throw new Error("nobody asked for it")
    }
    const builtins = { "fs.read": read, "fs.write": unused, "fs.list": unused, "fs.exists": unused }
    for (const [config, expected] of [
      ["builtin_hosts: [agentik-runtime]\n", "read me\n"],
      ["", "tool_unavailable"],
    ] as const) {
      const world = await openWorld(`${config}manifests: ["${manifests}"]\n`, { manifests: [], builtins })
      worlds.push(world)
      const envelope = await world.call("fs.read", { path: "README.md" })
      expect(envelope.ok ? envelope.value : envelope.error.code).toBe(expected)
    }
  })
  it("without a function is not available, and a name of caisson's own is nobody's to give", async () => {
    const world = await open()
    expect(await world.call("note.add", {})).toMatchObject({ ok: false, error: { code: "tool_unavailable" } })
    const data = openFolder()
    folders.push(data)
    chmodSync(data, 0o700)
    await expect(createHost({ data: join(data, "data"), builtins: { "file.read": () => 1 } })).rejects.toThrow(
      "file.read",
    )
    await expect(createHost({ data: join(data, "data"), builtins: { x: 1 as never } })).rejects.toThrow(
      "is no function",
    )
  })
})
