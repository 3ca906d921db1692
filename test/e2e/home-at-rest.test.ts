import { randomBytes } from "node:crypto"
import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { createHost, processCaller, readReceipts } from "../../src/host/index.ts"
import { homeFolder } from "../../src/host/data/homes.ts"
import { lookAt } from "../../src/sandbox/folder.ts"
import { acquireEngine } from "../support/docker-engine.ts"
import { describeNeeding } from "../support/needing.ts"
import { heldOnDisk } from "../support/on-disk.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { stateDriver } from "./home-world.ts"
import { openFolder, openWorld, type World } from "./host-world.ts"

const engine = await acquireEngine()
afterAll(async () => {
  if (engine.ok) await engine[Symbol.asyncDispose]()
})

const token = "/home/tool/.actor/token"
const canaryOf = (): string => `tok_${randomBytes(12).toString("hex")}`

interface Place extends AsyncDisposable {
  readonly world: World
  readonly manifests: string
  readonly everywhere: readonly string[]
}
const open = async (backend: "namespace" | "docker" = "namespace"): Promise<Place> => {
  const folder = openFolder()
  const docker = backend === "docker" && engine.ok ? `docker: { engine: "unix://${engine.socket}" }\n` : ""
  const manifests = stateDriver(folder)
  const world = await openWorld(docker, { manifests: [manifests], backend })
  return {
    world,
    manifests,
    everywhere: [world.folder, "/tmp", "/run", "/var/tmp", "/dev/shm"],
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      removeFolder(folder)
    },
  }
}
const read = async ({ world }: Pick<Place, "world">, path = token): Promise<string> => {
  const envelope = await world.call("fixture.act", { verb: "read", args: [path] })
  return envelope.ok ? String(envelope.value) : envelope.error.message
}

const suite = (backend: "namespace" | "docker"): void => {
  it("what a program keeps of its login is on no disk in the clear, neither while it runs nor afterwards", async () => {
    await using place = await open(backend)
    const { world, everywhere } = place
    const [kept, scratch] = [canaryOf(), canaryOf()]
    const since = Date.now() - 1000
    const found = (): string[] => [kept, scratch].flatMap((value) => heldOnDisk(value, everywhere, since))
    const stop = new AbortController()
    let during: string[] | undefined
    const held = world.host.call(
      {
        tool: "fixture.act",
        input: { verb: "sleep", args: [token, kept, "/home/tool/.unkept", scratch] },
        workspace: world.workspace,
      },
      {
        caller: processCaller("alice"),
        approved: true,
        signal: stop.signal,
        onEvent: (event) => {
          if (event.type !== "output" || during !== undefined) return
          during = found()
          stop.abort()
        },
      },
    )
    expect(await held).toMatchObject({ ok: false, error: { code: "cancelled" } })
    expect(during).toEqual([])
    expect(found()).toEqual([])
    expect(await read(place)).toBe(kept)
    expect(await read(place, "/home/tool/.unkept")).not.toContain(scratch)
    expect(found()).toEqual([])
    const homes = readdirSync(join(world.data, "homes"))
    expect(homes.filter((name) => name.endsWith(".sealed"))).toHaveLength(1)
  })

  it("what a call changes, adds and removes there is what the next one finds, with its modes, links and folders", async () => {
    await using place = await open(backend)
    const { world } = place
    const put = (...args: string[]) => world.call("fixture.act", { verb: "puts", args })
    expect(await put(token, "one", "/home/tool/.actor/other", "two")).toMatchObject({ ok: true })
    expect(await put(token, "three")).toMatchObject({ ok: true })
    expect(await world.call("fixture.act", { verb: "delete", args: ["/home/tool/.actor/other"] })).toMatchObject({
      ok: true,
    })
    expect(await read(place)).toBe("three")
    expect(await read(place, "/home/tool/.actor/other")).toContain("exited with 2")
    const kept = readReceipts(world.data).flatMap(({ metadata }) => metadata?.["home"] ?? [])
    expect(kept).toMatchObject([
      {
        kept: true,
        effects: [
          { kind: "create", path: ".actor/other" },
          { kind: "create", path: ".actor/token" },
        ],
      },
      { kept: true, effects: [{ kind: "modify", path: ".actor/token" }] },
      { kept: true, effects: [{ kind: "delete", path: ".actor/other" }] },
    ])
  })
}

describe("with the namespace backend", () => suite("namespace"))
describeNeeding("with the docker backend", engine.ok ? undefined : engine.reason, () => suite("docker"))

const homeOf = ({ world }: Pick<Place, "world">): string => {
  const [name = ""] = readdirSync(join(world.data, "homes")).filter((each) => each.endsWith(".sealed"))
  return join(world.data, "homes", name.replace(/\.sealed$/, ""))
}

it("a home under a key that is gone, or that was changed, is refused: it is never an empty one", async () => {
  await using place = await open()
  const { world } = place
  expect(await world.call("fixture.act", { verb: "write", args: [token, "mine"] })).toMatchObject({ ok: true })
  const sealed = `${homeOf(place)}.sealed`
  const before = readFileSync(sealed)
  const refused = {
    ok: false,
    error: {
      code: "internal",
      message: expect.stringContaining("cannot be read") as string,
      details: { home: expect.any(String) as string },
    },
  }
  const changed = Buffer.from(before)
  changed.writeUInt8(changed.readUInt8(changed.length - 1) ^ 1, changed.length - 1)
  writeFileSync(sealed, changed)
  expect(await world.call("fixture.act", { verb: "write", args: [token, "new"] })).toMatchObject(refused)
  expect(readFileSync(sealed)).toEqual(changed)
  writeFileSync(sealed, before)
  const [vault, key] = [join(world.data, "secrets/vault.json"), join(world.data, "keys/vault.key")]
  renameSync(vault, `${vault}.away`)
  expect(await world.call("fixture.act", { verb: "write", args: [token, "new"] })).toMatchObject(refused)
  renameSync(`${vault}.away`, vault)
  const own = readFileSync(key)
  writeFileSync(key, randomBytes(48).toString("base64"), { mode: 0o600 })
  expect(await world.call("fixture.act", { verb: "write", args: [token, "new"] })).toMatchObject(refused)
  writeFileSync(key, own)
  expect(readFileSync(sealed)).toEqual(before)
  expect(await read(place)).toBe("mine")
})

it("a rotation of the vault's keys takes homes along: old keys open none of them, and logins stay", async () => {
  await using place = await open()
  const { world } = place
  expect(await world.call("fixture.act", { verb: "write", args: [token, "mine"] })).toMatchObject({ ok: true })
  const [vault, key] = [join(world.data, "secrets/vault.json"), join(world.data, "keys/vault.key")]
  const [oldVault, oldKey] = [readFileSync(vault), readFileSync(key)]
  expect(await world.host.secrets.rotate()).toMatchObject({ ok: true })
  expect(await read(place)).toBe("mine")
  const [newVault, newKey] = [readFileSync(vault), readFileSync(key)]
  writeFileSync(vault, oldVault)
  writeFileSync(key, oldKey)
  expect(await read(place)).toContain("cannot be read")
  writeFileSync(vault, newVault)
  writeFileSync(key, newKey)
  expect(await read(place)).toBe("mine")
})

it("a home that lies there in the clear, from before, is taken over by the next call and removed", async () => {
  const folder = openFolder()
  const canary = canaryOf()
  try {
    const manifests = [stateDriver(folder)]
    await using world = await openWorld("", { manifests })
    const at = homeFolder(world.data, "/nowhere", {
      driver: "actor@1",
      file: join(folder, "state-tools/actor/DRIVER.md"),
      workspace: lookAt(world.workspace),
      user: "alice",
    })
    mkdirSync(join(at, ".actor"), { recursive: true })
    writeFileSync(join(at, ".actor/token"), canary)
    expect(await read({ world })).toBe(canary)
    expect(heldOnDisk(canary, [world.data])).toEqual([])
    expect(await read({ world })).toBe(canary)
  } finally {
    removeFolder(folder)
  }
})

it("more than a home may keep fails the call, says so, and leaves what was kept", async () => {
  await using place = await open()
  const { world } = place
  expect(await world.call("fixture.act", { verb: "write", args: [token, "mine"] })).toMatchObject({ ok: true })
  const many = await world.call("fixture.act", { verb: "many", args: ["/home/tool/.actor", "10050"] })
  expect(many).toMatchObject({
    ok: false,
    error: { code: "commit_failed", message: expect.stringContaining("10000 entries") as string },
  })
  expect(await read(place)).toBe("mine")
})

it("two hosts on one data folder keep what each changed, and of one path the later is told", async () => {
  await using place = await open()
  const { world } = place
  await using other = await createHost({ data: world.data, manifests: [place.manifests] })
  const call = (host: typeof other, ...args: string[]) =>
    host.call(
      { tool: "fixture.act", input: { verb: "puts", args }, workspace: world.workspace },
      { caller: processCaller("alice"), approved: true },
    )
  const file = (name: string): string => `/home/tool/.actor/${name}`
  expect(await call(world.host, file("base"), "0")).toMatchObject({ ok: true })
  const ended = await Promise.all([call(world.host, file("a"), "1"), call(other, file("b"), "2")])
  expect(ended).toMatchObject([{ ok: true }, { ok: true }])
  expect([await read(place, file("base")), await read(place, file("a")), await read(place, file("b"))]).toEqual([
    "0",
    "1",
    "2",
  ])
})

it("what a call would keep that began before a logout is thrown away, and its receipt says so", async () => {
  await using place = await open()
  const { world } = place
  const caller = processCaller("alice")
  const input = { verb: "write", args: [token, "before"] }
  const options = { caller, approved: true }
  expect(await world.host.call({ tool: "fixture.act", input, workspace: world.workspace }, options)).toMatchObject({
    ok: true,
  })
  const stop = new AbortController()
  let ended: Promise<unknown> | undefined
  const held = await world.host.call(
    { tool: "fixture.act", input: { verb: "sleep", args: [token, "after"] }, workspace: world.workspace },
    {
      ...options,
      signal: stop.signal,
      onEvent: (event) => {
        if (event.type !== "output" || ended !== undefined) return
        ended = world.host.logout("actor", { workspace: world.workspace, caller }).finally(() => stop.abort())
      },
    },
  )
  expect(await ended).toMatchObject({ ok: true })
  expect(held).toMatchObject({ ok: false, error: { code: "cancelled" } })
  expect(readReceipts(world.data, { call: held.call })[0]?.metadata).toMatchObject({
    home: { kept: false, discarded: "logged out meanwhile" },
  })
  expect(await read(place)).toContain("exited with 2")
})

it("a host that is killed while the program runs leaves the home as it was, and nothing of it in the clear", async () => {
  const folder = openFolder()
  const [kept, lost] = [canaryOf(), canaryOf()]
  try {
    const manifests = stateDriver(folder)
    const [data, workspace] = [join(folder, "data"), join(folder, "work")]
    mkdirSync(workspace)
    const since = Date.now() - 1000
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "host-home-holder.ts"), data, workspace, manifests],
      {
        stdio: ["pipe", "pipe", "inherit"],
      },
    )
    child.stdin.end(JSON.stringify([token, kept, lost]))
    await once(child.stdout, "data")
    child.kill("SIGKILL")
    await once(child, "close")
    expect([kept, lost].flatMap((value) => heldOnDisk(value, [folder, "/tmp", "/run", "/dev/shm"], since))).toEqual([])
    await using host = await createHost({ data, manifests: [manifests] })
    const input = { verb: "read", args: [token] }
    expect(await host.call({ tool: "fixture.act", input, workspace }, { approved: true })).toMatchObject({
      ok: true,
      value: kept,
    })
  } finally {
    removeFolder(folder)
  }
})
