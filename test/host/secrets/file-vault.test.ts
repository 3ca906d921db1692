import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, mkdtempSync, readFileSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { nextVaultKeyFile, vaultFile, vaultKeyFile } from "../../../src/data-folder/paths.ts"
import { openFileVault } from "../../../src/host/secrets/file-vault.ts"
import { Secret } from "../../../src/host/secrets/secret.ts"
import { meant, type SecretName } from "../../../src/host/secrets/vault.ts"

const canary = "canary-5b1f0c2e9d"
let data: string
beforeEach(() => {
  data = realpathSync(mkdtempSync(join(tmpdir(), "caisson-vault-")))
  vi.stubEnv("CAISSON_KEY_FILE", "")
  vi.stubEnv("CREDENTIALS_DIRECTORY", "")
})
afterEach(() => {
  vi.unstubAllEnvs()
  rmSync(data, { recursive: true, force: true })
})

const alice = { user: "alice" }
const valueOf = async (vault = openFileVault(data), slug = "api-key", scope: object = alice) => {
  const found = await vault.get(slug, scope)
  if (!found.ok) throw new Error(found.message)
  return found.value?.reveal()
}
const keyOf = (name: string, bytes = "k".repeat(40)): string => {
  const file = join(data, name)
  writeFileSync(file, bytes, { mode: 0o600 })
  return file
}

it("what is set is there, replaced, listed without its value, and gone when deleted", async () => {
  const vault = openFileVault(data)
  expect(await valueOf(vault)).toBeUndefined()
  expect(await vault.list()).toEqual({ ok: true, value: [] })
  expect(await vault.set("api-key", alice, new Secret("first"))).toEqual({ ok: true, value: undefined })
  await vault.set("api-key", alice, new Secret(canary))
  await vault.set("api-key", { user: "bob" }, new Secret("bobs"))
  expect(await valueOf()).toBe(canary)
  const listed = await vault.list()
  expect(listed).toMatchObject({ ok: true, value: [{ slug: "api-key", scope: alice }, { scope: { user: "bob" } }] })
  expect(JSON.stringify(listed)).not.toContain(canary)
  expect(await vault.delete("api-key", alice)).toEqual({ ok: true, value: true })
  expect(await vault.delete("api-key", alice)).toEqual({ ok: true, value: false })
  expect(await valueOf(vault)).toBeUndefined()
  expect(await valueOf(vault, "api-key", { user: "bob" })).toBe("bobs")
})

it("nothing of a name, a scope or a value lies on the disk in the clear, and only this user can read it", async () => {
  await openFileVault(data).set("api-key", alice, new Secret(canary))
  const written = readFileSync(vaultFile(data), "latin1")
  for (const word of [canary, "api-key", "alice", Buffer.from(canary).toString("base64").slice(0, 16)])
    expect(written).not.toContain(word)
  for (const file of [vaultFile(data), vaultKeyFile(data)]) expect(statSync(file).mode & 0o777).toBe(0o600)
})

it("a value is not told by printing, joining, logging or writing it as JSON", () => {
  const secret = new Secret(canary)
  for (const text of [String(secret), `${secret.toString()}`, JSON.stringify({ secret }), inspect({ a: [secret] })])
    expect(text).not.toContain(canary)
})

it("any change of the file is found, refused with what to do, and never written over", async () => {
  await openFileVault(data).set("api-key", alice, new Secret(canary))
  const file = vaultFile(data)
  const good = readFileSync(file)
  for (let at = 0; at < good.length - 1; at += 7) {
    const bad = Buffer.from(good)
    bad[at] = (bad[at] ?? 0) ^ 1
    writeFileSync(file, bad)
    const vault = openFileVault(data)
    for (const answer of [await vault.get("api-key", alice), await vault.set("other", alice, new Secret("x"))]) {
      // A flipped bit of base64 padding may stand for the same bytes.
      if (answer.ok) continue
      expect(answer.code).toBe("internal")
      expect(`${answer.message} ${answer.hint}`).toMatch(/backup/)
      expect(JSON.stringify(answer)).not.toContain(canary)
      expect(readFileSync(file)).toEqual(bad)
    }
    writeFileSync(file, good)
  }
  for (const cut of [0, 1, good.length >> 1, good.length - 4]) {
    writeFileSync(file, good.subarray(0, cut))
    expect(await openFileVault(data).list()).toMatchObject({ ok: false, code: "internal" })
  }
})

it("a vault is not opened under another key, nor a new key made beside it", async () => {
  await openFileVault(data).set("api-key", alice, new Secret(canary))
  const key = readFileSync(vaultKeyFile(data))
  rmSync(vaultKeyFile(data))
  expect(await openFileVault(data).set("b-key", alice, new Secret("x"))).toMatchObject({ ok: false, code: "internal" })
  expect(() => statSync(vaultKeyFile(data))).toThrow(/ENOENT/)
  writeFileSync(vaultKeyFile(data), "z".repeat(44), { mode: 0o600 })
  expect(await openFileVault(data).list()).toMatchObject({
    ok: false,
    message: expect.stringMatching(/was made under the key [0-9a-f]{16}, and .* holds [0-9a-f]{16}/) as string,
  })
  writeFileSync(vaultKeyFile(data), key)
  expect(await valueOf()).toBe(canary)
})

it("the key is the operator's where one is named, by file or as a credential, and must be closed to others", async () => {
  vi.stubEnv("CAISSON_KEY_FILE", keyOf("operators-key"))
  await openFileVault(data).set("api-key", alice, new Secret(canary))
  expect(() => statSync(vaultKeyFile(data))).toThrow(/ENOENT/)
  vi.stubEnv("CAISSON_KEY_FILE", "")
  expect(await openFileVault(data).list()).toMatchObject({ ok: false })
  vi.stubEnv("CREDENTIALS_DIRECTORY", data)
  keyOf("caisson-key")
  expect(await valueOf()).toBe(canary)
  chmodSync(join(data, "caisson-key"), 0o644)
  expect(await openFileVault(data).list()).toMatchObject({
    ok: false,
    message: expect.stringContaining("is open to others") as string,
    hint: expect.stringContaining("chmod 600") as string,
  })
  vi.stubEnv("CAISSON_KEY_FILE", keyOf("short", "short"))
  expect(await openFileVault(data).list()).toMatchObject({
    ok: false,
    message: expect.stringContaining("5 bytes") as string,
  })
})

it("rotating gives new keys and keeps every secret; one that broke off half-way is finished", async () => {
  const vault = openFileVault(data)
  await vault.set("api-key", alice, new Secret(canary))
  const [before, key] = [readFileSync(vaultFile(data)), readFileSync(vaultKeyFile(data))]
  expect(await vault.rotate()).toEqual({ ok: true, value: undefined })
  expect(await valueOf()).toBe(canary)
  expect(readFileSync(vaultKeyFile(data))).not.toEqual(key)
  // Killed between the vault and its key.
  const next = readFileSync(vaultKeyFile(data))
  writeFileSync(nextVaultKeyFile(data), next, { mode: 0o600 })
  writeFileSync(vaultKeyFile(data), key)
  expect(await valueOf()).toBe(canary)
  expect(readFileSync(vaultKeyFile(data))).toEqual(next)
  // Killed before the vault: the next key is nobody's.
  writeFileSync(nextVaultKeyFile(data), "n".repeat(44), { mode: 0o600 })
  expect(await valueOf()).toBe(canary)
  // An old file under a new key is not the vault.
  writeFileSync(vaultFile(data), before)
  expect(await openFileVault(data).list()).toMatchObject({ ok: false })
})

it("the operator's own key is replaced by naming the old one", async () => {
  const [old, fresh] = [keyOf("old"), keyOf("fresh", "f".repeat(40))]
  vi.stubEnv("CAISSON_KEY_FILE", old)
  await openFileVault(data).set("api-key", alice, new Secret(canary))
  vi.stubEnv("CAISSON_KEY_FILE", fresh)
  expect(await openFileVault(data).rotate()).toMatchObject({ ok: false })
  expect(await openFileVault(data, { oldKey: fresh }).rotate()).toMatchObject({ ok: false })
  expect(await openFileVault(data, { oldKey: old }).rotate()).toEqual({ ok: true, value: undefined })
  expect(await valueOf()).toBe(canary)
})

it.each([
  ["Api", "v", /not a secret's name/],
  ["../x", "v", /not a secret's name/],
  ["api-key", "", /has 0 bytes/],
  ["api-key", "x".repeat(64 * 1024 + 1), /has 65537 bytes/],
  ["api-key", "a\0b", /NUL/],
])("refuses to keep %s", async (slug, value, message) => {
  const answer = await openFileVault(data).set(slug, alice, new Secret(value))
  expect(answer).toMatchObject({ ok: false, code: "input_invalid", message: expect.stringMatching(message) as string })
})

it("of processes that set secrets at once none loses another's", async () => {
  const vault = openFileVault(data)
  await Promise.all(Array.from({ length: 20 }, (_, i) => vault.set(`key-${i}`, alice, new Secret(`value-${i}`))))
  const code = `
    import { openFileVault } from ${JSON.stringify(join(import.meta.dirname, "../../../src/host/secrets/file-vault.ts"))}
    import { Secret } from ${JSON.stringify(join(import.meta.dirname, "../../../src/host/secrets/secret.ts"))}
    const vault = openFileVault(process.argv[1])
    for (let i = 0; i < 10; i++) await vault.set("p" + process.argv[2] + "-" + i, {}, new Secret("v"))
  `
  const codes = await Promise.all(
    ["a", "b", "c"].map(
      (name) =>
        new Promise((resolve) =>
          spawn(process.execPath, ["--input-type=module-typescript", "-e", code, data, name], {
            stdio: "inherit",
          }).once("exit", resolve),
        ),
    ),
  )
  expect(codes).toEqual([0, 0, 0])
  const listed = await vault.list()
  expect(listed.ok && listed.value.length).toBe(50)
})

it("a writer that is killed at any moment leaves the old vault or the new one", async () => {
  const code = `
    import { writeSync } from "node:fs"
    import { openFileVault } from ${JSON.stringify(join(import.meta.dirname, "../../../src/host/secrets/file-vault.ts"))}
    import { Secret } from ${JSON.stringify(join(import.meta.dirname, "../../../src/host/secrets/secret.ts"))}
    const vault = openFileVault(process.argv[1])
    for (let i = 0; i < 5000; i++) {
      for (const answer of [await vault.set("key-a", {}, new Secret("v" + i)), await vault.rotate()])
        if (!answer.ok) { writeSync(2, answer.message); process.exit(3) }
      writeSync(1, ".")
    }
  `
  for (let round = 1; round <= 6; round += 1) {
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", code, data], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    let written = 0
    child.stdout.on("data", (dots: Buffer) => {
      written += dots.length
      if (written >= round) child.kill("SIGKILL")
    })
    const [, signal] = (await once(child, "exit")) as [number | null, string | null]
    expect(signal).toBe("SIGKILL")
    expect(await valueOf(openFileVault(data), "key-a", {})).toMatch(/^v\d+$/)
  }
})

const named = (scope: SecretName["scope"]): SecretName => ({ slug: "api-key", scope, set: "" })
const use = { user: "alice", workspace: "w1", driver: "gh@1 x" }

it.each([
  [[{}], {}],
  [[{}, { user: "alice" }], { user: "alice" }],
  [[{ user: "alice" }, { workspace: "w1" }, { driver: "gh@1 x" }], { driver: "gh@1 x" }],
  [[{ driver: "gh@1 x" }, { user: "alice", workspace: "w1" }], { user: "alice", workspace: "w1" }],
  [[{ user: "bob" }, { workspace: "w2" }, { driver: "gh@1 y" }], undefined],
  [[{ user: "alice", workspace: "w2" }], undefined],
])("of %j a use means %j", (scopes, expected) => {
  expect(meant(scopes.map(named), "api-key", use)).toEqual(expected)
  expect(meant(scopes.map(named), "other", use)).toBeUndefined()
})
