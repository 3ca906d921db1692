import { spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { text } from "node:stream/consumers"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { vaultFile } from "../../src/data-folder/paths.ts"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { itemDriver, itemTool, startItems } from "../support/servers/items.ts"
import { KvServer } from "../support/servers/kv-vault.ts"
import { startWeb } from "../support/servers/web.ts"
import { openFolder, openWorld, type World } from "./host-world.ts"

const manifests = [join(import.meta.dirname, "../../fixtures/secrets")]
const vouched = `manifests: ["${manifests[0]}"]\n`
const canary = "tok_live-5b1f0c2e9d"
const digest = `${createHash("sha256").update(canary).digest("hex")}  -\n`
const tell = (world: World, how: string, user = "alice") =>
  world.call("fixture.tell", { how }, { caller: processCaller(user) })

/** What of a call's layers was still to be removed may go meanwhile, folders too. */
const ifThere = <T>(read: () => T, otherwise: T): T => {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return otherwise
    throw error
  }
}
const nowhereIn = (folder: string): void => {
  for (const entry of ifThere(() => readdirSync(folder, { withFileTypes: true }), [])) {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) nowhereIn(path)
    else if (entry.isFile())
      expect(
        ifThere(() => readFileSync(path, "latin1"), ""),
        path,
      ).not.toContain("5b1f0c2e9d")
  }
}

it("a driver's program gets the secret that it names, of the user who calls, and nothing else tells it", async () => {
  await using world = await openWorld(vouched, { manifests: [] })
  expect(await tell(world, "digest")).toMatchObject({
    ok: false,
    error: { code: "auth_required", hint: expect.stringContaining("caisson secrets set") as string },
  })
  await world.host.secrets.set("teller-key", canary, { user: "alice" })
  await world.host.secrets.set("teller-key", "bobs-other-value", { user: "bob" })
  const told = await tell(world, "digest")
  expect(told).toMatchObject({ ok: true, value: digest })
  expect(await tell(world, "digest", "bob")).toMatchObject({ ok: true })
  expect(await tell(world, "digest", "bob")).not.toMatchObject({ value: digest })
  expect(await tell(world, "digest", "carol")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  // What the program itself prints of it is overwritten.
  expect(await tell(world, "plain")).toMatchObject({ ok: true, value: "it is ******\n" })
  const failed = await tell(world, "fail")
  expect(failed).toMatchObject({ ok: false, error: { details: { stderr: "no, ******\n" } } })
  const why = await world.host.why(
    { tool: "fixture.tell", workspace: world.workspace },
    { caller: processCaller("alice") },
  )
  expect(why.selected).toBe("teller@1")
  expect(JSON.stringify([told, failed, why])).not.toContain("5b1f0c2e9d")
  nowhereIn(world.folder)
  const log = readFileSync(join(world.data, "audit/audit-log.jsonl"), "utf8")
  expect(log).toContain('"slug":"teller-key"')
  expect(log).toContain('"via":"env"')
})

it("a driver of a folder that nobody vouches for gets only what was set for that driver", async () => {
  await using world = await openWorld("", { manifests })
  await world.host.secrets.set("teller-key", canary, { user: "alice" })
  expect(await tell(world, "digest")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  await world.host.secrets.set("teller-key", canary, { user: "alice", driver: "teller" })
  expect(await tell(world, "digest")).toMatchObject({ ok: true, value: digest })
})

it("a secret of one workspace is of no use in another, and one that is removed is gone", async () => {
  await using world = await openWorld(vouched, { manifests: [] })
  const elsewhere = join(world.folder, "elsewhere")
  mkdirSync(elsewhere)
  await world.host.secrets.set("teller-key", canary, { user: "alice", workspace: elsewhere })
  expect(await tell(world, "digest")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  expect(
    await world.call("fixture.tell", { how: "digest" }, { caller: processCaller("alice"), workspace: elsewhere }),
  ).toMatchObject({ ok: true, value: digest })
  await world.host.secrets.remove("teller-key", { user: "alice", workspace: elsewhere })
  expect(
    await world.call("fixture.tell", { how: "digest" }, { caller: processCaller("alice"), workspace: elsewhere }),
  ).toMatchObject({ ok: false, error: { code: "auth_required" } })
})

it("a damaged vault ends the calls that need it, with what to do, and no others", async () => {
  await using world = await openWorld(vouched)
  await world.host.secrets.set("teller-key", canary, { user: "alice" })
  writeFileSync(vaultFile(world.data), "damaged", { mode: 0o600 })
  expect(await tell(world, "digest")).toMatchObject({
    ok: false,
    error: { code: "internal", message: expect.stringContaining("is damaged") as string },
  })
  expect(await world.call("json.query", { filter: ".", document: 1 })).toMatchObject({ ok: true })
  const login = await world.host.login("teller", {
    caller: processCaller("alice"),
    workspace: world.workspace,
    person: { answer: async () => "typed" },
  })
  expect(login).toMatchObject({
    ok: false,
    error: {
      code: "internal",
      message: expect.stringContaining("is damaged") as string,
      hint: expect.any(String) as string,
    },
  })
})

it("a caller keeps secrets of its own user alone", async () => {
  await using world = await openWorld()
  const bob = { ...processCaller("bob"), actor: "bob", roles: ["caller"] as const }
  const set = (user: string, shared?: boolean) =>
    world.host.secrets.set("a-key", canary, { caller: bob, ...(shared === true ? { shared } : { user }) })
  expect(await set("bob")).toMatchObject({ ok: true })
  expect(await set("alice")).toMatchObject({ ok: false, error: { code: "unauthorised" } })
  expect(await set("", true)).toMatchObject({ ok: false, error: { code: "unauthorised" } })
  await world.host.secrets.set("a-key", canary, { user: "alice" })
  expect(await world.host.secrets.list({ caller: bob })).toMatchObject({
    ok: true,
    value: [{ scope: { user: "bob" } }],
  })
  expect(await world.host.secrets.rotate({ caller: bob })).toMatchObject({ ok: false })
})

it("a request that the host makes carries the secret of the user who calls, and its answer tells nothing of it", async () => {
  await using server = await startItems()
  const { port, seen } = server
  const more = mkdtempSync(join(tmpdir(), "caisson-secrets-"))
  try {
    for (const [name, text] of Object.entries({ "TOOL.md": itemTool, "DRIVER.md": itemDriver }))
      writeFileSync(join(more, name), text)
    const config = `manifests: ["${more}"]\negress: { services: { items.test: "127.0.0.1:${port}" } }\n`
    await using world = await openWorld(config, { manifests: [] })
    const get = (user: string) => world.call("item.get", {}, { caller: processCaller(user) })
    expect(await get("alice")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(seen).toEqual([])
    await world.host.secrets.set("items-key", canary, { user: "alice" })
    const got = await get("alice")
    expect(got).toMatchObject({ ok: true })
    expect(seen).toEqual([`Bearer ${canary}`])
    expect(JSON.stringify(got)).not.toContain("5b1f0c2e9d")
    expect(await get("bob")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    nowhereIn(world.folder)
  } finally {
    rmSync(more, { recursive: true, force: true })
  }
})

const inventory = (secret: string): string => `---
secrets:
  - ${secret}
---
`

it("a request that the host makes carries a secret to no other host than its author means it for", async () => {
  await using server = await startItems()
  const { port, seen } = server
  const more = mkdtempSync(join(tmpdir(), "caisson-secrets-"))
  try {
    const meantFor = (host: string): string =>
      inventory(
        `{ slug: items-key, name: K, description: d, exposures: [{ kind: egress-substitute, placeholderName: ITEMS_KEY, allowedByDefault: true, intendedProviders: ["${host}"] }] }`,
      )
    const ask = async (host: string) => {
      const files = {
        "TOOL.md": itemTool,
        "DRIVER.md": itemDriver.replace('egress: ["', 'egress: ["api.test", "'),
        "SECRETS.md": meantFor(host),
      }
      for (const [name, text] of Object.entries(files)) writeFileSync(join(more, name), text)
      const config = `manifests: ["${more}"]\negress: { services: { items.test: "127.0.0.1:${port}" } }\n`
      await using world = await openWorld(config, { manifests: [] })
      await world.host.secrets.set("items-key", canary, { user: "alice" })
      return await world.call("item.get", {}, { caller: processCaller("alice") })
    }
    expect(await ask("api.test")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(seen).toEqual([])
    expect(await ask("items.test")).toMatchObject({ ok: true })
    expect(seen).toEqual([`Bearer ${canary}`])
  } finally {
    rmSync(more, { recursive: true, force: true })
  }
})

it("what a folder that nobody vouches for says of secrets does not change which one a vouched driver is given", async () => {
  const more = mkdtempSync(join(tmpdir(), "caisson-secrets-"))
  try {
    for (const secret of [
      "{ slug: root-key, name: K, description: d, exposures: [{ kind: env, name: TELLER_KEY }] }",
      "{ slug: teller-key, name: K, description: d, exposures: [{ kind: file, path: /x }] }",
    ]) {
      writeFileSync(join(more, "SECRETS.md"), inventory(secret))
      await using world = await openWorld(vouched, { manifests: [more] })
      await world.host.secrets.set("teller-key", canary, { user: "alice" })
      await world.host.secrets.set("root-key", "quite-another-value", { user: "alice" })
      expect(await tell(world, "digest")).toMatchObject({ ok: true, value: digest })
    }
  } finally {
    rmSync(more, { recursive: true, force: true })
  }
})

it("whoever observes the call hears nothing of the secret either", async () => {
  await using world = await openWorld(vouched, { manifests: [] })
  await world.host.secrets.set("teller-key", canary, { user: "alice" })
  const heard: string[] = []
  for (const how of ["plain", "fail"])
    await world.host.call(
      { tool: "fixture.tell", input: { how }, workspace: world.workspace },
      {
        caller: processCaller("alice"),
        onEvent: (event) =>
          heard.push(event.type === "output" ? Buffer.from(event.bytes).toString() : JSON.stringify(event)),
      },
    )
  expect(heard.join("")).toContain("it is *")
  expect(heard.join("")).not.toContain(canary)
})

it("a secret that is put in at the proxy reaches its host alone, and never the program", async () => {
  await using web = await startWeb()
  const folder = openFolder()
  try {
    const [data, work, config, roots] = ["data", "work", "caisson.yaml", "roots.pem"].map((name) => join(folder, name))
    mkdirSync(work ?? "")
    writeFileSync(roots ?? "", web.caPem)
    const at = `"127.0.0.1:${web.httpsPort}"`
    writeFileSync(config ?? "", `${vouched}egress: { services: { api.test: ${at}, other.test: ${at} } }\n`, {
      mode: 0o600,
    })
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "secret-sender.ts"), config ?? "", data ?? "", work ?? ""],
      { env: { ...process.env, NODE_EXTRA_CA_CERTS: roots, TOKEN: canary }, stdio: ["ignore", "pipe", "inherit"] },
    )
    const said = (await text(child.stdout)).trim().split("\n")
    const held = "$$SECRET[SENDER_TOKEN]$$"
    expect(said.map((line) => JSON.parse(line) as object)).toMatchObject([
      { ok: true, value: `${held}\n200\n` },
      { ok: true, value: `${held}\n200\n` },
    ])
    expect(web.seen.map(({ host, authorization }) => [host, authorization])).toEqual([
      ["api.test", `Bearer ${canary}`],
      ["other.test", `Bearer ${held}`],
    ])
    expect(said.join("")).not.toContain("5b1f0c2e9d")
    nowhereIn(folder)
  } finally {
    removeFolder(folder)
  }
})

it("a vault on a server serves calls, and what is done with secrets is a line of the log without their values", async () => {
  await using server = await new KvServer().start()
  server.tokens.add("s.this-hosts-own")
  const folder = mkdtempSync(join(tmpdir(), "caisson-kv-"))
  try {
    const tokenFile = join(folder, "token")
    writeFileSync(tokenFile, "s.this-hosts-own\n", { mode: 0o600 })
    const config = `${vouched}vault: { kv: { address: "${server.address}", token_file: "${tokenFile}" } }\n`
    await using world = await openWorld(config, { manifests: [] })
    expect(await tell(world, "digest")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(await world.host.secrets.set("teller-key", canary, { user: "alice" })).toMatchObject({ ok: true })
    expect(server.secrets.has("caisson/user=alice/teller-key")).toBe(true)
    const told = await tell(world, "digest")
    expect(told).toMatchObject({ ok: true, value: digest })
    expect(await tell(world, "digest", "bob")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    server.status = 503
    const sealed = await tell(world, "digest")
    expect(sealed).toMatchObject({ ok: false, error: { class: "infrastructure", retryable: true } })
    server.status = undefined
    expect(await world.host.secrets.remove("teller-key", { user: "alice" })).toMatchObject({ ok: true, value: true })
    expect(await tell(world, "digest")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const lines = [...readReceipts(world.data)].map(({ action, subject, metadata }) => ({ action, subject, metadata }))
    expect(lines).toEqual(
      expect.arrayContaining([
        {
          action: "secret.set",
          subject: { kind: "secret", ref: "teller-key" },
          metadata: { ok: true, scope: { user: "alice" } },
        },
        expect.objectContaining({ action: "secret.removed" }),
        expect.objectContaining({
          action: "tool.invoked",
          metadata: expect.objectContaining({
            secrets: [expect.objectContaining({ slug: "teller-key", granted_by: "scope" })],
          }),
        }),
      ]),
    )
    expect(JSON.stringify([lines, told, sealed])).not.toContain("5b1f0c2e9d")
    nowhereIn(world.data)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
