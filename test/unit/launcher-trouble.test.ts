import { expect, test } from "vitest"
import { killedTooSoon } from "../../src/sandbox/namespace/trouble.ts"

test("a launcher that crashed as it started is reported with the signal and its last words", () => {
  const { message } = killedTooSoon("SIGTRAP", "# Fatal process out of memory: SemiSpace::Commit")
  expect(message).toContain("SIGTRAP")
  expect(message).toContain("Fatal process out of memory: SemiSpace::Commit")
})

test("a launcher that was killed without a word is reported as that", () => {
  expect(killedTooSoon("SIGKILL", "").message).toMatch(/\(SIGKILL\) before it was ready$/)
})
