import { expect, test } from "vitest"
import { killedTooSoon, launcherEnded } from "../../src/sandbox/namespace/trouble.ts"

test("a launcher that crashed as it started is reported with the signal and its last words", () => {
  const { message } = killedTooSoon("SIGTRAP", "# Fatal process out of memory: SemiSpace::Commit")
  expect(message).toContain("SIGTRAP")
  expect(message).toContain("Fatal process out of memory: SemiSpace::Commit")
})

test("a launcher that was killed without a word is reported as that", () => {
  expect(killedTooSoon("SIGKILL", "").message).toMatch(/\(SIGKILL\) before it was ready$/)
})

test.each([
  ["SIGKILL", "", "was ended from outside (SIGKILL);"],
  [null, "unshare: sigprocmask unblock failed: Invalid argument\n", "was ended from outside;"],
  [
    null,
    "FATAL ERROR: heap out of memory\nunshare: sigprocmask unblock failed: Invalid argument",
    ": FATAL ERROR: heap out of memory;",
  ],
  [null, "Error: no such thing", "ended: Error: no such thing;"],
])("a launcher that was there and ended (%s, %j) is told without unshare's own trouble", (signal, stderr, told) => {
  const message = launcherEnded(signal, stderr)
  expect(message).toContain(told)
  expect(message).not.toContain("sigprocmask")
})
