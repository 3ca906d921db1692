import { chmodSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import type { KvSettings } from "../../../src/host/config/types.ts"
import { openKvVault } from "../../../src/host/secrets/kv/kv-vault.ts"
import { placeOf, scopeOf } from "../../../src/host/secrets/kv/places.ts"
import { Secret } from "../../../src/host/secrets/secret.ts"
import type { SecretScope } from "../../../src/host/secrets/vault.ts"
import { KvServer } from "../../support/servers/kv-vault.ts"

const canary = "canary-77a0e1b3"
const token = "s.this-hosts-own"
const alice = { user: "alice" }
let folder: string
let server: KvServer
const disposing: AsyncDisposable[] = []

const fileWith = (name: string, content: string, mode = 0o600): string => {
  const file = join(folder, name)
  writeFileSync(file, content, { mode })
  chmodSync(file, mode)
  return file
}
const vaultWith = (settings: Partial<KvSettings> = {}) => {
  const vault = openKvVault({
    address: server.address,
    mount: "secret",
    prefix: "caisson",
    auth: { by: "token", tokenFile: fileWith("token", `${token}\n`) },
    ...settings,
  })
  disposing.push(vault)
  return vault
}
const revealed = async (vault: ReturnType<typeof vaultWith>, slug: string, scope: SecretScope) => {
  const found = await vault.get(slug, scope)
  if (!found.ok) throw new Error(found.message)
  return found.value?.reveal()
}

beforeEach(async () => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-kv-")))
  server = await new KvServer().start()
  server.tokens.add(token)
})
afterEach(async () => {
  for (const each of disposing.splice(0)) await each[Symbol.asyncDispose]()
  await server[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

it("what is set is there, replaced, listed without its value, and gone with its versions when deleted", async () => {
  const vault = vaultWith()
  expect(await revealed(vault, "api-key", alice)).toBeUndefined()
  expect(await vault.list()).toEqual({ ok: true, value: [] })
  expect(await vault.set("api-key", alice, new Secret("first"))).toEqual({ ok: true, value: undefined })
  await vault.set("api-key", alice, new Secret(canary))
  await vault.set("github/token", {}, new Secret("everybody's"))
  await vault.set("api-key", { user: "alice", driver: "gh@1 file:/a/b c.md", workspace: "w_1" }, new Secret("narrow"))
  expect(await revealed(vault, "api-key", alice)).toBe(canary)
  expect(await revealed(vault, "github/token", {})).toBe("everybody's")
  const listed = await vault.list()
  if (!listed.ok) throw new Error(listed.message)
  expect(listed.value).toHaveLength(3)
  expect(listed.value).toEqual(
    expect.arrayContaining([
      { slug: "api-key", scope: alice },
      { slug: "github/token", scope: {} },
      { slug: "api-key", scope: { user: "alice", driver: "gh@1 file:/a/b c.md", workspace: "w_1" } },
    ]),
  )
  expect(JSON.stringify(listed)).not.toContain(canary)
  expect(await vault.delete("api-key", alice)).toEqual({ ok: true, value: true })
  expect(await vault.delete("api-key", alice)).toEqual({ ok: true, value: false })
  expect(server.secrets.has("caisson/user=alice/api-key")).toBe(false)
  expect(await revealed(vault, "api-key", alice)).toBeUndefined()
})

it("what a person wrote with the server's own tools is found, and what this host would not write is passed over", async () => {
  server.put("caisson/user=bob/api-key", { value: canary })
  for (const odd of [
    "caisson/user=/x-y",
    "caisson/nobody/api-key",
    "caisson/api-key",
    "caisson/user=bob/UPPER",
    "caisson/user=bob/a/b/c-d",
    "caisson/user=b%6Fb/api-key",
  ])
    server.put(odd, { value: "odd" })
  const vault = vaultWith()
  expect(await vault.list()).toEqual({ ok: true, value: [{ slug: "api-key", scope: { user: "bob" } }] })
  expect(await revealed(vault, "api-key", { user: "bob" })).toBe(canary)
})

it("a secret without a `value`, or one that was softly deleted, is told as what it is", async () => {
  server.put("caisson/shared/api-key", { password: canary })
  const odd = await vaultWith().get("api-key", {})
  expect(odd).toMatchObject({ ok: false, code: "internal", message: expect.stringContaining("without a `value`") })
  expect(JSON.stringify(odd)).not.toContain(canary)
  server.put("caisson/shared/old-key", { value: canary })
  for (const version of server.secrets.get("caisson/shared/old-key") ?? []) version.deleted = true
  expect(await vaultWith().get("old-key", {})).toEqual({ ok: true, value: undefined })
})

it("an engine that takes no blind writing is written to, also where another writes at the same time", async () => {
  server.casRequired = true
  const vault = vaultWith()
  server.beforeWrite = () => server.put("caisson/shared/api-key", { value: "another's" })
  expect(await vault.set("api-key", {}, new Secret(canary))).toEqual({ ok: true, value: undefined })
  expect(await revealed(vault, "api-key", {})).toBe(canary)
  expect(server.secrets.get("caisson/shared/api-key")).toHaveLength(2)
})

it("the names are asked for once in a while, and anew after a change of this host's own", async () => {
  const vault = vaultWith()
  await vault.list()
  const asked = server.requests.length
  await vault.list()
  expect(server.requests).toHaveLength(asked)
  await vault.set("api-key", {}, new Secret(canary))
  expect(await vault.list()).toMatchObject({ value: [{ slug: "api-key" }] })
})

describe("signing in", () => {
  it("a role is signed in once, and again when its token has ended", async () => {
    server.roles.set("the-role", "the-secret")
    const vault = vaultWith({
      auth: {
        by: "app-role",
        mount: "approle",
        roleIdFile: fileWith("role", "the-role"),
        secretIdFile: fileWith("secret", "the-secret\n"),
      },
    })
    await vault.set("api-key", {}, new Secret(canary))
    expect(await revealed(vault, "api-key", {})).toBe(canary)
    const logins = () => server.requests.filter(({ path }) => path.endsWith("/login")).length
    expect(logins()).toBe(1)
    server.tokens.clear()
    expect(await revealed(vault, "api-key", {})).toBe(canary)
    expect(logins()).toBe(2)
  })
  it("a token's file that was replaced is read again when the old token is refused", async () => {
    const vault = vaultWith()
    await vault.list()
    server.tokens.clear()
    server.tokens.add("s.the-next")
    fileWith("token", "s.the-next")
    expect(await vault.get("api-key", {})).toEqual({ ok: true, value: undefined })
  })
  it.each([
    ["is open to others", () => fileWith("bad", token, 0o644), "open to others"],
    ["is not there", () => join(folder, "none"), "ENOENT"],
    ["is no file", () => folder, "no plain file"],
    ["holds more than one word", () => fileWith("bad", `${token}\r\nx-evil: 1`), "one word"],
    ["is too long", () => fileWith("bad", "t".repeat(5000)), "one word"],
  ])("a token's file that %s is refused, and nothing of it is told", async (_what, file, why) => {
    const answer = await vaultWith({ auth: { by: "token", tokenFile: file() } }).get("api-key", {})
    expect(answer).toMatchObject({ ok: false, message: expect.stringContaining(why) })
    expect(JSON.stringify(answer)).not.toContain(token)
    expect(server.requests).toEqual([])
  })
  it("a token that may not is told what policy it wants, and the token is not in what is said", async () => {
    server.tokens.clear()
    const answer = await vaultWith().get("api-key", {})
    expect(answer).toMatchObject({ ok: false, hint: expect.stringContaining("secret/data/caisson/*") })
    expect(JSON.stringify(answer)).not.toContain(token)
  })
  it("the namespace goes along where there is one", async () => {
    await vaultWith({ namespace: "team/a" }).list()
    expect(server.requests[0]).toMatchObject({ namespace: "team/a" })
  })
})

it.each([
  [503, true],
  [500, true],
  [429, true],
  [307, false],
  [302, false],
] as const)(
  "an answer of %i is a failure that may be tried again: %s, and a redirect is not followed",
  async (status, retryable) => {
    server.status = status
    expect(await vaultWith().get("api-key", {})).toMatchObject({ ok: false, code: "internal", retryable })
    expect(server.requests).toHaveLength(1)
  },
)

it("a server that is gone is told as that", async () => {
  const vault = vaultWith({ address: "http://127.0.0.1:1/" })
  expect(await vault.get("api-key", {})).toMatchObject({
    ok: false,
    retryable: true,
    message: expect.stringContaining("ECONNREFUSED"),
  })
})

it("a certificate that nobody vouches for is refused before anything is sent", async () => {
  const { createCallAuthority } = await import("../../../src/egress-proxy/tls/authority.ts")
  using authority = createCallAuthority()
  const leaf = authority.leafFor("127.0.0.1")
  await using secure = await new KvServer({ key: leaf.key, cert: leaf.cert }).start()
  secure.tokens.add(token)
  expect(await vaultWith({ address: secure.address }).get("api-key", {})).toMatchObject({ ok: false, retryable: true })
  expect(secure.requests).toEqual([])
})

it("an authority of the operator's own is trusted for its server", async () => {
  const { createCallAuthority } = await import("../../../src/egress-proxy/tls/authority.ts")
  using authority = createCallAuthority()
  const leaf = authority.leafFor("localhost")
  await using secure = await new KvServer({ key: leaf.key, cert: leaf.cert }).start()
  secure.tokens.add(token)
  const address = secure.address.replace("127.0.0.1", "localhost")
  const vault = vaultWith({ address, caFile: fileWith("ca.pem", authority.caPem) })
  expect(await vault.set("api-key", {}, new Secret(canary))).toEqual({ ok: true, value: undefined })
  expect(await revealed(vault, "api-key", {})).toBe(canary)
})

it("its keys are not this host's to rotate", async () => {
  expect(await vaultWith().rotate()).toMatchObject({ ok: false, code: "input_invalid" })
})

it("what is no name of a secret is neither asked for nor kept", async () => {
  const vault = vaultWith()
  for (const slug of ["../x", "UPPER", "a/b/c", "", "a\n"]) {
    expect(await vault.get(slug, {})).toEqual({ ok: true, value: undefined })
    expect(await vault.set(slug, {}, new Secret("v"))).toMatchObject({ ok: false, code: "input_invalid" })
    expect(await vault.delete(slug, {})).toMatchObject({ ok: false, code: "input_invalid" })
  }
  expect(server.requests).toEqual([])
})

it("a scope is read back from where it lies, whatever it holds, and is one segment", () => {
  const text = fc.string({ minLength: 1, unit: "grapheme" }).filter((value) => value.isWellFormed())
  fc.assert(
    fc.property(fc.record({ user: text, workspace: text, driver: text }, { requiredKeys: [] }), (scope) => {
      const [segment = "", ...rest] = placeOf("a-b/c-d", scope) ?? []
      expect(rest).toEqual(["a-b", "c-d"])
      expect(segment).not.toMatch(/[/\s]|^\.+$/)
      expect(scopeOf(segment)).toEqual(scope)
    }),
  )
})
