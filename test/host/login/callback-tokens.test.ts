import { expect, it } from "vitest"
import { CallbackTokens } from "../../../src/host/login/callback/tokens.ts"

const key = { tenant: "local", driver: "gh@1 file:/a", workspace: "w_1", user: "alice" }
const changed = (token: string, at: number): string => {
  const bytes = Buffer.from(token, "base64url")
  bytes[at] = (bytes[at] ?? 0) ^ 1
  return bytes.toString("base64url")
}

it("a word is good once", () => {
  const tokens = new CallbackTokens()
  const token = tokens.issue(key, 1000)
  expect(tokens.redeem(token, key)).toBeUndefined()
  expect(tokens.redeem(token, key)).toBe("used")
})

it("a word is good up to its time and not after it", () => {
  let now = 5
  const tokens = new CallbackTokens(() => now)
  const [first, second] = [tokens.issue(key, 1000), tokens.issue(key, 1000)]
  now = 1005
  expect(tokens.redeem(first, key)).toBeUndefined()
  now = 1005.5
  expect(tokens.redeem(second, key)).toBe("late")
})

it("a word with any other nonce, time or signature is forged", () => {
  const tokens = new CallbackTokens()
  const token = tokens.issue(key, 1000)
  for (let at = 0; at < 56; at++) expect([at, tokens.redeem(changed(token, at), key)]).toEqual([at, "forged"])
  expect(tokens.redeem(token, key)).toBeUndefined()
})

it("a word of another process is forged", () => {
  expect(new CallbackTokens().redeem(new CallbackTokens().issue(key, 1000), key)).toBe("forged")
})

it.each([{ tenant: "other" }, { driver: "gh@1 file:/b" }, { workspace: "w_2" }, { user: "bob" }])(
  "a word is nobody's but its own login's: %j",
  (other) => {
    const tokens = new CallbackTokens()
    const token = tokens.issue(key, 1000)
    const theirs = { ...key, ...other }
    expect(tokens.redeem(token, theirs)).toBe("foreign")
    // Nor with the other's name written over it.
    const stolen = Buffer.concat([
      Buffer.from(token, "base64url").subarray(0, 56),
      Buffer.from(tokens.issue(theirs, 1000), "base64url").subarray(56),
    ])
    expect(tokens.redeem(stolen.toString("base64url"), theirs)).toBe("forged")
    expect(tokens.redeem(token, key)).toBeUndefined()
  },
)

it.each(["", "x", "A".repeat(117), "A".repeat(118), "A".repeat(119), "=".repeat(118)])("%j is no word", (text) => {
  const tokens = new CallbackTokens()
  expect(["malformed", "foreign"]).toContain(tokens.redeem(text, key))
})
