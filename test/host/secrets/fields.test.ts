import { expect, it } from "vitest"
import { fieldFor, pickField } from "../../../src/host/secrets/fields.ts"
import { Secret } from "../../../src/host/secrets/secret.ts"
import type { SecretEntry } from "../../../src/manifest/types.ts"

const entry = (secretKind: SecretEntry["secretKind"], exposures: SecretEntry["exposures"] = []): SecretEntry => ({
  slug: "a-key",
  name: "a-key",
  description: "",
  secretKind,
  access: { reveal: [], bind: [], rotate: [] },
  exposures,
  env: [],
  tags: [],
  metadata: {},
})
const login = new Secret(JSON.stringify({ accessToken: "at-1", refreshToken: "rt-1", expiresAt: 17, none: null }))

it.each([
  ["opaque", undefined],
  ["json", undefined],
  ["oauth", "accessToken"],
  ["keypair", "private"],
] as const)("of a secret of kind %s, `%s` is meant where nothing else is said", (kind, field) => {
  expect(fieldFor(entry(kind), "A_KEY")?.name).toBe(field)
})

it("an exposure's own field is meant for its own variable alone", () => {
  const two = entry("oauth", [
    { kind: "env", name: "REFRESH", field: "refreshToken" },
    { kind: "env", name: "ACCESS" },
  ])
  expect(fieldFor(two, "REFRESH")).toEqual({ name: "refreshToken", usual: false })
  expect(fieldFor(two, "ACCESS")).toEqual({ name: "accessToken", usual: true })
})

it("a field is given alone, and what is not there is told by name", () => {
  const told = (field?: string, value = login) => {
    const picked = pickField("a-key", value, field === undefined ? undefined : { name: field, usual: false })
    return picked.ok ? picked.value.reveal() : picked.message
  }
  expect(told("accessToken")).toBe("at-1")
  expect(told("expiresAt")).toBe("17")
  expect(told(undefined, new Secret("plain"))).toBe("plain")
  for (const absent of ["none", "other", "__proto__", "toString"]) expect(told(absent)).toContain(`field \`${absent}\``)
  for (const odd of ["plain-canary", "[1]", "null", '"text"', "{"]) {
    const message = told("accessToken", new Secret(odd))
    expect(message).toContain("a-key")
    expect(message).not.toContain("canary")
  }
})

it("a plain token stands for a login's access token, where nobody asks for a field by name", () => {
  const picked = pickField("a-key", new Secret("plain-token"), { name: "accessToken", usual: true })
  expect(picked.ok && picked.value.reveal()).toBe("plain-token")
})
