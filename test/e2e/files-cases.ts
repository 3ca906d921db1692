/** Files that a contract exchanges with its tool (AIP-16), the same for every kind and on each backend. */
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest"
import { defineDriver } from "../../src/define/index.ts"
import { readReceipts } from "../../src/host/index.ts"
import type { Envelope, HostOptions } from "../../src/host/types.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

const fixtures = join(import.meta.dirname, "../../fixtures/files")
const makeFifo = (path: string): void => void execFileSync("mkfifo", [path])
const implement = [{ tool: "files.turn", version: "^1.0.0" }]

/** The closures of this process are never called: those of the module are. */
const own = defineDriver(
  {
    id: "turn-own",
    name: "Turner of its own",
    description: "A fixture whose own function turns one file into another.",
    kind: "http",
    implements: implement,
    execute: { "files.turn": async () => ({ said: "in the host's own process" }) },
  },
  { module: join(fixtures, "own/turn.ts") },
)
const builtin = defineDriver({
  id: "turn-builtin",
  name: "Turner in the host's process",
  description: "A fixture whose function is the embedder's.",
  kind: "builtin",
  implements: implement,
})
/** The same, by a name of the driver's own for where its files are. */
const renamed = defineDriver({
  id: "turn-renamed",
  name: "Turner by another name",
  description: "A fixture whose function is the embedder's.",
  kind: "builtin",
  implements: [{ tool: "files.turn", version: "^1.0.0", mapping: { root: "_workflowFsRoot" } }],
})
const turnHere: NonNullable<HostOptions["builtins"]>[string] = ({ input }) => {
  const { verb, _workflowFsRoot, root = _workflowFsRoot } = input as Record<"verb" | "_workflowFsRoot" | "root", string>
  const text = readFileSync(join(root, "source"), "utf8")
  if (verb === "symlink") symlinkSync("/etc/hostname", join(root, "result"))
  else if (verb === "fifo") makeFifo(join(root, "result"))
  else if (verb === "edit") writeFileSync(join(root, "draft"), `${readFileSync(join(root, "draft"), "utf8")}edited\n`)
  else if (verb !== "nothing") writeFileSync(join(root, "result"), text.toUpperCase())
  if (verb === "fail") throw new RangeError("on purpose")
  return { said: root }
}

export interface FilesWorld extends World {
  turn(verb: string, driver?: string, more?: object): Promise<Envelope>
  /** The workspace as it is before a test. */
  reset(): void
  text(path: string): string | undefined
  at(path: string): string
  /** the `files` of a call's receipt */
  recorded(envelope: Envelope): readonly Record<string, unknown>[]
}

export const openFilesWorld = async ({
  settings = "",
  ...options
}: HostOptions & { readonly settings?: string } = {}): Promise<FilesWorld> => {
  const given = { manifests: [fixtures, own, builtin, renamed], builtins: { "files.turn": turnHere } }
  const world = await openWorld(settings, { ...given, ...options })
  const at = (path: string): string => join(world.workspace, path)
  const put = (path: string, text: string): void => {
    mkdirSync(join(at(path), ".."), { recursive: true })
    writeFileSync(at(path), text)
  }
  return {
    ...world,
    at,
    reset() {
      for (const name of readdirSync(world.workspace)) rmSync(at(name), { recursive: true })
      put("in/source.txt", "a source\n")
      put("in/draft.txt", "a draft\n")
    },
    turn: (verb, driver = "turn-cli", more = {}) => world.call("files.turn", { verb }, { driver, ...more }),
    text: (path) => (existsSync(at(path)) ? readFileSync(at(path), "utf8") : undefined),
    recorded(envelope) {
      const [receipt] = readReceipts(world.data, { call: envelope.call })
      return (receipt?.metadata?.["files"] ?? []) as readonly Record<string, unknown>[]
    },
  }
}

const sha256 = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`
const codeOf = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)
const saidBy = (envelope: Envelope): string =>
  envelope.ok ? (envelope.value as { said: string }).said : `${envelope.error.code}: ${envelope.error.message}`

export const kindsSuite = (drivers: readonly string[], open: () => Promise<FilesWorld>): void => {
  let world: FilesWorld
  beforeAll(async () => {
    world = await open()
  })
  beforeEach(() => world.reset())
  afterAll(() => world[Symbol.asyncDispose]())

  for (const driver of drivers) {
    it(`${driver}: is handed its inputs, and what it leaves is judged, committed and recorded by digest`, async () => {
      const envelope = await world.turn("upper", driver)
      const path = `out/files.turn/${envelope.call}.txt`
      expect(envelope).toMatchObject({
        ok: true,
        notes: expect.arrayContaining([expect.stringContaining("`extra`")]) as string[],
      })
      expect(world.text(path)).toBe("A SOURCE\n")
      expect(
        envelope.effects.map(({ kind, path: at, declared, committed }) => [kind, at, declared, committed]),
      ).toEqual([
        ["mkdir", "out", true, true],
        ["mkdir", "out/files.turn", true, true],
        ["create", path, true, true],
      ])
      expect(world.recorded(envelope)).toEqual([
        { file: "input", name: "source", path: "in/source.txt", size: 9, digest: sha256("a source\n") },
        { file: "input", name: "draft", path: "in/draft.txt", size: 8, digest: sha256("a draft\n") },
        {
          file: "output",
          name: "draft",
          path: "in/draft.txt",
          size: 8,
          digest: sha256("a draft\n"),
          state: "unchanged",
        },
        { file: "output", name: "result", path, size: 9, digest: sha256("A SOURCE\n"), state: "written" },
        {
          file: "output",
          name: "extra",
          path: expect.stringMatching(/^out\/\d{4}-\d\d-\d\d\.txt$/) as string,
          state: "absent",
        },
      ])
    })
    it(`${driver}: does not start where an input is not there`, async () => {
      rmSync(world.at("in/source.txt"))
      const before = digestOfFolder(world.workspace)
      const envelope = await world.turn("upper", driver)
      expect(envelope).toMatchObject({
        ok: false,
        error: { code: "input_invalid", details: { file: "source", path: "in/source.txt", reason: "absent" } },
        effects: [],
      })
      expect(saidBy(envelope)).toContain("nothing was run")
      expect(digestOfFolder(world.workspace)).toBe(before)
    })
    it(`${driver}: keeps the files of a tool that says that it failed, and nothing else of it`, async () => {
      const envelope = await world.turn("fail", driver)
      expect(envelope.ok).toBe(false)
      expect(world.text(`out/files.turn/${envelope.call}.txt`)).toBeDefined()
      if (driver === "turn-cli")
        expect(envelope.effects).toContainEqual(
          expect.objectContaining({ path: "notes/stray.txt", declared: true, committed: false }),
        )
      expect(world.text("notes/stray.txt")).toBeUndefined()
      const [receipt] = readReceipts(world.data, { call: envelope.call })
      const kept = (receipt?.metadata?.["effects"] ?? []) as readonly { path: string; committed: boolean }[]
      expect(kept.filter(({ committed }) => committed).map(({ path }) => path)).toEqual([
        "out",
        "out/files.turn",
        `out/files.turn/${envelope.call}.txt`,
      ])
    })
    it(`${driver}: commits nothing where its files are not approved`, async () => {
      const before = digestOfFolder(world.workspace)
      expect(codeOf(await world.turn("upper", driver, { approved: false }))).toBe("approval_required")
      expect(codeOf(await world.turn("fail", driver, { approved: false }))).not.toBe("ok")
      expect(await world.turn("upper", driver, { plan: true })).toMatchObject({
        ok: true,
        effects: expect.arrayContaining([expect.objectContaining({ kind: "create", committed: false })]) as object[],
      })
      expect(digestOfFolder(world.workspace)).toBe(before)
    })
    it(`${driver}: is told where its files are by the host alone`, async () => {
      const envelope = await world.call("files.turn", { verb: "upper", _workflowFsRoot: "/workspace/in" }, { driver })
      expect(saidBy(envelope)).not.toContain("/workspace")
      expect(world.text(`out/files.turn/${envelope.call}.txt`)).toBe("A SOURCE\n")
    })
  }
}

/** What a hostile program or workspace may try, by the one fixture that can do all of it. */
export const hostileSuite = (open: () => Promise<FilesWorld>): void => {
  let world: FilesWorld
  beforeAll(async () => {
    world = await open()
  })
  beforeEach(() => world.reset())
  afterAll(() => world[Symbol.asyncDispose]())
  const undone = async (verb: string): Promise<Envelope> => {
    const before = digestOfFolder(world.workspace)
    const envelope = await world.turn(verb)
    expect(digestOfFolder(world.workspace)).toBe(before)
    return envelope
  }

  it("finds its own files in the folder, and the workspace only as its driver may see it", async () => {
    expect(saidBy(await world.turn("look"))).toMatch(/^draft,source\|\((No such file|Permission denied)/)
  })
  it("cannot change, remove, open up or move an input that is read-only", async () => {
    const said = saidBy(await world.turn("spoil")).split("|")
    expect(said.slice(0, 4)).not.toContain("ok")
    expect(said.slice(1, 4)).not.toContain("gone")
    expect(said.at(-1)).toBe("a source\n")
    expect(world.text("in/source.txt")).toBe("a source\n")
  })
  it("gives an input that goes out under the same key back in its place", async () => {
    const envelope = await world.turn("edit")
    expect(saidBy(envelope)).toBe("a draft\nedited\n")
    expect(envelope.effects).toMatchObject([{ kind: "modify", path: "in/draft.txt", declared: true, committed: true }])
    expect(world.text("in/draft.txt")).toBe("a draft\nedited\n")
  })
  it.each([
    ["symlink", "a symbolic link"],
    ["inward", "a symbolic link"],
    ["fifo", "a pipe"],
    ["folder", "a folder"],
    ["swap", "its folder was replaced"],
  ])("takes no output that is no plain file: %s", async (verb, why) => {
    const envelope = await undone(verb)
    expect(saidBy(envelope)).toContain(why)
    expect(codeOf(envelope)).toBe("output_invalid")
  })
  it("takes the bytes of a file with two names, and none of its modes", async () => {
    const linked = await world.turn("hardlink")
    expect(world.text(`out/files.turn/${linked.call}.txt`)).toBe("mine\n")
    const set = await world.turn("setuid")
    expect(set.effects.find(({ kind }) => kind === "create")).toMatchObject({ mode: { after: 0o644 } })
  })
  it("cannot give out an input that it only links to", async () => {
    expect(saidBy(await world.turn("linksource"))).toMatch(/^no: /)
  })
  it("leaves what else lies in the folder behind", async () => {
    const envelope = await world.turn("scratch")
    expect(envelope.effects.filter(({ kind }) => kind === "create").map(({ path }) => path)).toEqual([
      `out/files.turn/${envelope.call}.txt`,
    ])
  })
  it("commits no file that the tool was stopped over", async () => {
    const cancel = new AbortController()
    const before = digestOfFolder(world.workspace)
    const ending = world.host.call(
      { tool: "files.turn", input: { verb: "sleep" }, workspace: world.workspace, driver: "turn-cli" },
      { approved: true, signal: cancel.signal, onEvent: ({ type }) => type === "output" && cancel.abort() },
    )
    expect(codeOf(await ending)).toBe("cancelled")
    expect(digestOfFolder(world.workspace)).toBe(before)
  })

  it("hands over no file behind a link, wherever that leads", async () => {
    const refuses = async (reason: string): Promise<void> => {
      expect(await undone("upper")).toMatchObject({ ok: false, error: { details: { file: "source", reason } } })
    }
    rmSync(world.at("in/source.txt"))
    symlinkSync("/etc/hostname", world.at("in/source.txt"))
    await refuses("link")
    rmSync(world.at("in/source.txt"))
    symlinkSync("draft.txt", world.at("in/source.txt"))
    await refuses("link")
    rmSync(world.at("in"), { recursive: true })
    mkdirSync(world.at("else"))
    writeFileSync(world.at("else/source.txt"), "x")
    symlinkSync("else", world.at("in"))
    await refuses("link")
  })
  it("hands over nothing that is no regular file, and does not wait for a pipe's writer", async () => {
    rmSync(world.at("in/source.txt"))
    makeFifo(world.at("in/source.txt"))
    expect(await world.turn("upper")).toMatchObject({ ok: false, error: { details: { reason: "not_a_file" } } })
    rmSync(world.at("in/source.txt"))
    mkdirSync(world.at("in/source.txt"))
    expect(await world.turn("upper")).toMatchObject({ ok: false, error: { details: { reason: "not_a_file" } } })
  })
  it("hands over no more than a call may write, however little of it is on the disk", async () => {
    truncateSync(world.at("in/source.txt"), 2 ** 40)
    expect(await world.turn("upper")).toMatchObject({
      ok: false,
      error: { code: "limit_exceeded", details: { file: "source", reason: "too_large" } },
    })
  })
  it("hands over a file with two names as any other", async () => {
    linkSync(world.at("in/source.txt"), world.at("in/twin.txt"))
    expect(codeOf(await world.turn("upper"))).toBe("ok")
  })
  it("writes no output through a link, nor over something that is no file, and says so", async () => {
    const outside = join(world.folder, "outside")
    mkdirSync(outside)
    symlinkSync(outside, world.at("out"))
    const envelope = await world.turn("upper")
    expect(envelope).toMatchObject({ ok: true, effects: [] })
    expect(envelope.ok && envelope.notes).toEqual(
      expect.arrayContaining([expect.stringContaining("`result` was not written")]),
    )
    expect(existsSync(join(outside, "files.turn"))).toBe(false)
    rmSync(world.at("out"))
    writeFileSync(world.at("out"), "a file")
    expect(await world.turn("upper")).toMatchObject({ ok: true, effects: [] })
    expect(world.text("out")).toBe("a file")
  })
}
