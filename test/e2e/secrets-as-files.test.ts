/** Secrets that a program is given as files of its home, on each backend. */
import { createHash, randomBytes } from "node:crypto"
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { processCaller } from "../../src/host/index.ts"
import { acquireEngine } from "../support/docker-engine.ts"
import { describeNeeding } from "../support/needing.ts"
import { heldOnDisk } from "../support/on-disk.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder, openWorld, type World } from "./host-world.ts"

const engine = await acquireEngine()
afterAll(async () => {
  if (engine.ok) await engine[Symbol.asyncDispose]()
})

const bin = `#!/bin/sh
[ "$1" = --version ] && echo "filed 1.0.0" && exit
at=~/.filed
case "$2" in
  digest) sha256sum < $at/key; stat -c '%a %U' $at/key; echo "variable: \${FILED_KEY:-none}" ;;
  plain) cat $at/key ;;
  hold) cat $at/key > $at/copy; echo here; exec sleep 600 ;;
  keep) echo kept > $at/state; rm -f $at/key; echo mine > $at/key ;;
  state) cat $at/state ;;
  nest) echo kept > $at/state; rm -f $at/key; mkdir $at/key; echo planted > $at/key/more; chmod 0 $at/key ;;
  plant) rm -rf $at; ln -s /workspace $at ;;
esac
`
const driver = (writes: string): string => `---
name: Filed
id: filed
description: A fixture that reads a key from a file.
version: 1.0.0
kind: cli
bin: bin/filed
install: [{ method: vendored, path: bin/filed }]
version_check: { cmd: filed --version, parse: 'filed (\\d+\\.\\d+\\.\\d+)', range: ^1.0.0 }
auth: { ref: ./SECRETS.md, state: { paths: [], env: [FILED_KEY] } }
sandbox:
  network: { egress: [], ingress: [] }
  fs: { read: [], write: [${writes}], deny: [] }
  exec: { allow: true, spawn: [sha256sum, stat, cat, rm, ln, sleep, mkdir, chmod] }
  env: { pass: [FILED_KEY], set: {} }
output: { default_format: text }
implements: [{ tool: fixture.tell, version: ^1.0.0, metadata: { cli: { argv: [--, "\${input.how}"], output_format: text } } }]
---
`
const tool = `---
name: Tell
id: fixture.tell
description: Tells what it was given.
version: 1.0.0
inputs: { type: object, properties: { how: { type: string } }, required: [how] }
outputs: { type: string }
mutates: []
approval: auto
timeout_ms: 60000
---
`
const inventory = (secret: string): string =>
  `---\nname: S\nid: s\nschema: secrets/v1\nversion: 1.0.0\ndescription: d\nsecrets:\n  - { slug: filed-key, name: K, description: d, ${secret} }\n---\n`
const atKey = 'exposures: [{ kind: file, path: "~/.filed/key", mode: 0o400 }]'

interface Place extends AsyncDisposable {
  readonly world: World
  readonly value: string
  tell(how: string, user?: string): ReturnType<World["call"]>
}
const open = async (backend: "namespace" | "docker", secret = atKey, writes = '"~/.filed/**"'): Promise<Place> => {
  const folder = openFolder()
  const put = (name: string, text: string): void => writeFileSync(join(folder, "m", name), text)
  mkdirSync(join(folder, "m/bin"), { recursive: true })
  put("bin/filed", bin)
  chmodSync(join(folder, "m/bin/filed"), 0o755)
  put("DRIVER.md", driver(writes))
  put("TOOL.md", tool)
  put("SECRETS.md", inventory(secret))
  const docker = backend === "docker" && engine.ok ? `docker: { engine: "unix://${engine.socket}" }\n` : ""
  const world = await openWorld(`${docker}manifests: ["${folder}/m"]\n`, { manifests: [], backend })
  const value = `tok_${randomBytes(12).toString("hex")}`
  await world.host.secrets.set("filed-key", value, { user: "alice" })
  return {
    world,
    value,
    tell: (how, user = "alice") => world.call("fixture.tell", { how }, { caller: processCaller(user) }),
    async [Symbol.asyncDispose]() {
      await world[Symbol.asyncDispose]()
      removeFolder(folder)
    },
  }
}
const digestOf = (value: string): string => createHash("sha256").update(value).digest("hex")
const logOf = ({ data }: World): string => readFileSync(join(data, "audit/audit-log.jsonl"), "utf8")

const suite = (backend: "namespace" | "docker"): void => {
  it("is a file with its mode, in memory, of the user who calls, for as long as the program runs", async () => {
    await using place = await open(backend)
    const { world, value, tell } = place
    const since = Date.now() - 1000
    const found = (): string[] =>
      heldOnDisk(value, [world.folder, "/run/caisson", "/run/caisson-users", "/dev/shm"], since)
    let during: readonly string[] | undefined
    expect(await tell("digest")).toMatchObject({
      ok: true,
      value: `${digestOf(value)}  -\n400 tool\nvariable: none\n`,
    })
    expect(await tell("plain")).toMatchObject({ ok: true, value: "******" })
    expect(await tell("digest", "bob")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const stop = new AbortController()
    await world.host.call(
      { tool: "fixture.tell", input: { how: "hold" }, workspace: world.workspace },
      {
        caller: processCaller("alice"),
        approved: true,
        signal: stop.signal,
        onEvent: ({ type }) => {
          if (type !== "output" || during !== undefined) return
          during = found()
          stop.abort()
        },
      },
    )
    expect(during).toEqual([])
    expect(found()).toEqual([])
    expect(logOf(world)).toContain('"via":"file"')
    expect(logOf(world)).not.toContain(value)
  })

  it("is not kept, whatever the program makes of it, and is what the vault has in the next call", async () => {
    await using place = await open(backend)
    const { world, value, tell } = place
    expect(await tell("keep")).toMatchObject({ ok: true })
    expect(await tell("state")).toMatchObject({ ok: true, value: "kept\n" })
    expect(await tell("digest")).toMatchObject({ value: expect.stringContaining(digestOf(value)) as string })
    expect(logOf(world)).not.toContain(digestOf(value))
    expect(logOf(world)).not.toContain('.filed/key","size')
    await world.host.secrets.set("filed-key", "another-value-77", { user: "alice" })
    expect(await tell("digest")).toMatchObject({
      value: expect.stringContaining(digestOf("another-value-77")) as string,
    })
    await world.host.secrets.remove("filed-key", { user: "alice" })
    expect(await tell("state")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  })

  it("leaves the rest of the home as it can be opened again, where a program made a folder of it", async () => {
    await using place = await open(backend)
    const { value, tell } = place
    expect(await tell("nest")).toMatchObject({ ok: true })
    expect(await tell("state")).toMatchObject({ ok: true, value: "kept\n" })
    expect(await tell("digest")).toMatchObject({ value: expect.stringContaining(digestOf(value)) as string })
  })

  it("goes where it is to go and nowhere else, also where a program left a link in the way", async () => {
    await using place = await open(backend, atKey, '"~/**"')
    const { world, value, tell } = place
    expect(await tell("plant")).toMatchObject({ ok: true })
    expect(await tell("digest")).toMatchObject({ value: expect.stringContaining(digestOf(value)) as string })
    expect(heldOnDisk(value, [world.folder])).toEqual([])
  })
}

describe("a secret that is a file, with the namespace backend", () => suite("namespace"))
describeNeeding("a secret that is a file, with the docker backend", engine.ok ? undefined : engine.reason, () =>
  suite("docker"),
)

it.each([
  [
    "a variable and a file, each with its own field",
    'kind: oauth, exposures: [{ kind: env, name: FILED_KEY, field: accessToken }, { kind: file, path: "/home/tool/.filed/key", field: other }]',
    /^[0-9a-f]{64} {2}-\n600 tool\nvariable: \*{6}\n$/,
  ],
] as const)("one secret is %s", async (_what, secret, said) => {
  await using place = await open("namespace", secret)
  const { world, tell } = place
  await world.host.secrets.set("filed-key", JSON.stringify({ accessToken: "of-the-variable", other: "of-the-file" }), {
    user: "alice",
  })
  const told = await tell("digest")
  expect(told).toMatchObject({ ok: true, value: expect.stringMatching(said) as string })
  expect(JSON.stringify(told)).toContain(digestOf("of-the-file"))
  expect(await tell("plain")).toMatchObject({ value: "******" })
})

it.each(["/etc/filed/key", "/workspace/key", "~/."])("one that is to lie at %s is refused by name", async (path) => {
  await using place = await open("namespace", `exposures: [{ kind: file, path: "${path}" }]`)
  expect(await place.tell("digest")).toMatchObject({
    ok: false,
    error: { code: "tool_unavailable", hint: expect.stringContaining("below `~/`") as string },
  })
})
