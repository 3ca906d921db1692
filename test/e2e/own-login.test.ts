/** A driver's own `login` and `refresh`, run by themselves in a real sandbox. */
import { writeFileSync } from "node:fs"
import { createServer, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { defineDriver, defineTool } from "../../src/define/index.ts"
import { openWholeCore } from "../support/open-core.ts"
import { createOwnLogin } from "../../src/host/call/running/outside/own-login.ts"
import { openDataFolder } from "../../src/host/data/folder.ts"
import { loadConfig } from "../../src/host/config/load.ts"
import type { OwnLogin, RanOwnLogin } from "../../src/host/login/run-own.ts"
import { Secret } from "../../src/host/secrets/secret.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder } from "./host-world.ts"

const module = join(import.meta.dirname, "../../fixtures/own-functions/login.ts")
const notes = defineTool({
  id: "own.notes",
  description: "d",
  inputSchema: { type: "object" },
  outputSchema: { type: "object" },
})
const driver = (id: string, more: object, name = "default"): ReturnType<typeof defineDriver> =>
  defineDriver(
    {
      id,
      name: "Own login",
      description: "d",
      kind: "http",
      network: { egress: ["declared.test:80"] },
      implements: [{ tool: "own.notes", version: "^1.0.0" }],
      auth: { state: { paths: ["~/.config/own/**"], env: ["OWN_KEY"] } },
      execute: { "own.notes": async () => ({}) },
      ...more,
    },
    { module, export: name },
  )
// The closures of this process are never called: those of the module are.
const functions = { login: async () => ({ ok: true }) as const, refresh: async () => ({ ok: true }) as const }
const canary = "tok_live-7c2e9d5b1f"

let folder = ""
let server: Server
let says = "ok"
let asked: () => void = () => undefined
let core: Awaited<ReturnType<typeof openWholeCore>>
beforeAll(async () => {
  folder = openFolder()
  const data = openDataFolder(join(folder, "data"))
  server = createServer((_request, response) => {
    asked()
    response.end(says)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  const file = join(folder, "caisson.yaml")
  writeFileSync(
    file,
    `egress: { services: { declared.test: "127.0.0.1:${port}", other.test: "127.0.0.1:${port}" } }\n`,
    {
      mode: 0o600,
    },
  )
  core = await openWholeCore({
    record: async () => undefined,
    data,
    config: loadConfig(data, file),
    catalogue: join(import.meta.dirname, "../../manifests"),
    manifests: [],
    defined: [notes, driver("own-login", functions), driver("own-plain", {}, "plain")],
    warm: false,
    closing: new AbortController().signal,
  })
})
afterAll(async () => {
  await core[Symbol.asyncDispose]()
  server.close()
  removeFolder(folder)
})
let home = ""
let homes = 0
beforeEach(() => {
  homes += 1
  home = join(folder, "homes", String(homes))
  asked = () => undefined
})
const token = async (): Promise<string | undefined> => {
  const opened = await core.homes.open(home, [])
  if (!opened.ok) throw new Error(opened.message)
  const found = opened.value.content.find(({ path }) => path === ".config/own/token")
  return found?.kind === "file" ? new TextDecoder().decode(found.content) : undefined
}

const run = (said: string, more: Partial<OwnLogin> = {}, signal = new AbortController().signal, id = "own-login") => {
  says = said
  const found = core.registry.drivers.find(({ contract }) => contract.id === id)
  if (found === undefined) throw new Error(`there is no ${id}`)
  const secret = { name: "OWN_KEY", slug: "own-key", value: new Secret(canary), grantedBy: "test", bound: true }
  const secrets = [secret] as unknown as NonNullable<OwnLogin["secrets"]>
  return createOwnLogin(core)({ driver: found, name: "login", home, secrets, timeoutMs: 60_000, ...more }, signal)
}
const words = (ran: RanOwnLogin): string => JSON.stringify(ran)

describe("a driver's own login", () => {
  it("runs with the secret that it is bound to and its declared host, and what it leaves in the home stays", async () => {
    expect(await run("ok")).toEqual({
      ran: true,
      result: { ok: true, nextRefreshMs: Date.parse("2030-01-01T00:00:00Z") },
      unreachable: [],
      denied: [],
    })
    expect(await token()).toMatch(/^login [0-9a-f]{8} after nothing$/)
    expect(await run("ok", { name: "refresh" })).toMatchObject({ ran: true, result: { ok: true } })
    expect(await token()).toMatch(/^refresh [0-9a-f]{8} after login$/)
  })
  it.each([
    ["refused", { ok: false, reason: "auth_expired" }],
    ["cancelled", { ok: false, reason: "user_cancelled", message: "" }],
  ])("that says %j is told so, without the secret", async (said, result) => {
    const ran = await run(said)
    expect(ran).toMatchObject({ ran: true, result })
    expect(words(ran)).not.toContain(canary)
    expect(await token()).toBeUndefined()
  })
  it("leaves what a refresh changed in the home, also where it then failed: tokens may be rotated by then", async () => {
    await run("ok")
    expect(await run("refused", { name: "refresh" })).toMatchObject({ ran: true, result: { ok: false } })
    expect(await token()).toMatch(/^refresh/)
  })
  it("reaches no other host, and who it was kept from is told", async () => {
    expect(await run("stray")).toMatchObject({
      ran: true,
      denied: [expect.stringContaining("other.test") as string],
    })
  })
  it("sees no workspace", async () => {
    const ran = await run("look")
    expect(ran).toMatchObject({ ran: true, result: { message: '[false,"own-login"]' } })
  })
  it.each(["throw", "odd", "made-up"])("that gives no result (%s) is broken, and leaves nothing", async (said) => {
    const ran = await run(said)
    expect(ran).toMatchObject({ ran: false, why: "broken" })
    expect(words(ran)).not.toContain(canary)
    expect(await token()).toBeUndefined()
  })
  it("ends where it is cancelled, and where its time is over", async () => {
    const cancel = new AbortController()
    asked = () => cancel.abort()
    expect(await run("wait", {}, cancel.signal)).toMatchObject({ ran: false, why: "cancelled" })
    asked = () => undefined
    expect(await run("wait", { timeoutMs: 3_000 })).toMatchObject({ ran: false, why: "timed-out" })
  })
  it("that a driver does not bring is told as absent", async () => {
    expect(await run("ok", {}, undefined, "own-plain")).toMatchObject({ ran: false, why: "absent" })
  })
})
