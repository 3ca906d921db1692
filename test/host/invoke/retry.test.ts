import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { callErrorOf } from "../../../src/host/failure.ts"
import { endingFailure } from "../../../src/host/invoke/error-map.ts"
import {
  type AttemptFailed,
  afterFailure,
  backoffSchedule,
  effectiveRetry,
  effectiveTimeout,
  once,
} from "../../../src/host/invoke/retry.ts"
import type { RetryRule } from "../../../src/manifest/types.ts"
import type { Ending } from "../../../src/sandbox/backend.ts"
import { driverOf, entryOf, toolOf } from "../resolver/contracts.ts"

const workspaceWrite = [{ class: "workspace", scope: "/x", text: "workspace:/x" }]
const rule = (maxAttempts: number, backoff: RetryRule["backoff"] = "fixed", initialMs = 10): RetryRule => ({
  maxAttempts,
  backoff,
  initialMs,
})

describe("the timeout", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, number, number | undefined, number | undefined, number | undefined, number | undefined, string]>([
    ["is the contract's when nothing else speaks", 100, undefined, undefined, undefined, undefined, "100 contract"],
    ["is the driver's when less", 100, 50, undefined, undefined, undefined, "50 driver"],
    ["is never widened", 100, 500, 500, 500, 500, "100 contract"],
    ["is the entry's when least", 100, 50, 20, 30, 40, "20 implementation"],
    ["is the runner's when least", 100, 50, 40, 30, 60, "30 runner"],
    ["is the host's when least", 100, 50, 40, 30, 10, "10 host"],
    ["names the contract on a tie", 100, 100, 100, 100, 100, "100 contract"],
  ])("%s", (_, contract, driver, entry, runner, host, expected) => {
    const speakers = {
      tool: toolOf({ timeoutMs: contract }),
      driver: driverOf("d", { ...(driver === undefined ? {} : { timeoutMs: driver }), limits: runner === undefined ? {} : { timeoutMs: runner } }),
      implementation: entryOf(entry === undefined ? {} : { timeoutMs: entry }),
    }
    const { ms, from } = effectiveTimeout(speakers, host)
    expect(`${ms} ${from}`).toBe(expected)
  })
})

describe("the retry rule", () => {
  // biome-ignore format: a table reads by rows
  it.each<[string, RetryRule | undefined, RetryRule | undefined, RetryRule | undefined, RetryRule]>([
    ["is one attempt when nobody speaks", undefined, undefined, undefined, once],
    ["is the contract's", rule(3), undefined, undefined, rule(3)],
    ["is the driver's before the contract's", rule(5), rule(2, "exponential"), undefined, rule(2, "exponential")],
    ["is the entry's before the driver's", rule(5), rule(2), rule(4), rule(4)],
    ["is capped by the contract", rule(2), undefined, rule(9), rule(2)],
    ["is the driver's where the contract is silent", undefined, rule(4), undefined, rule(4)],
    ["is capped by the host", rule(20), undefined, undefined, rule(10)],
  ])("%s", (_, contract, driver, entry, expected) => {
    const retry = (value: RetryRule | undefined) => (value === undefined ? {} : { retry: value })
    expect(effectiveRetry({ tool: toolOf(retry(contract)), driver: driverOf("d", retry(driver)), implementation: entryOf(retry(entry)) })).toEqual(expected)
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, RetryRule, readonly number[]]>([
    ["once", once, []],
    ["fixed", rule(4), [10, 10, 10]],
    ["exponential", rule(4, "exponential"), [10, 20, 40]],
    ["cut to the longest pause", rule(5, "exponential", 10_000), [10_000, 20_000, 30_000, 30_000]],
  ])("has a schedule: %s", (_, each, pauses) => {
    expect(backoffSchedule(each)).toEqual(pauses)
  })
})

describe("after a failed attempt", () => {
  const failed: AttemptFailed = {
    tool: toolOf(),
    rule: rule(3),
    attempt: 1,
    error: { retryable: true },
    elapsedMs: 0,
    timeoutMs: 1000,
  }
  const writer = toolOf({ mutates: workspaceWrite })
  // biome-ignore format: a table reads by rows
  it.each<[string, Partial<AttemptFailed>, string]>([
    ["tries again", {}, "after 10"],
    ["tries the last time", { attempt: 2 }, "after 10"],
    ["stops when the attempts are used", { attempt: 3 }, "attempts-used"],
    ["stops at an error that is not retryable", { error: { retryable: false } }, "not-retryable"],
    ["does not repeat a call that mutates", { tool: writer }, "not-safe-to-repeat"],
    ["repeats a call that mutates idempotently", { tool: { ...writer, idempotent: true } }, "after 10"],
    ["repeats a call with an idempotency key", { tool: writer, idempotencyKey: true }, "after 10"],
    ["stops when the pause would outlast the call", { elapsedMs: 990 }, "no-time-left"],
    ["uses the last moment", { elapsedMs: 989 }, "after 10"],
    ["waits as long as the other side asked for", { askedMs: 300 }, "after 300"],
    ["waits no less than its own rule says", { askedMs: 3 }, "after 10"],
    ["stops when what the other side asked for would outlast the call", { askedMs: 1000 }, "no-time-left"],
  ])("%s", (_, over, expected) => {
    const next = afterFailure({ ...failed, ...over })
    expect(next.retry ? `after ${next.delayMs}` : next.why).toBe(expected)
  })

  it("never makes more attempts than the rule and never repeats what is not safe", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 20 }),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        (max, idempotent, mutates, retryable) => {
          const tool = toolOf({ idempotent, mutates: mutates ? workspaceWrite : [] })
          let attempt = 1
          while (
            attempt < 50 &&
            afterFailure({ ...failed, tool, rule: rule(max, "fixed", 0), attempt, error: { retryable } }).retry
          )
            attempt++
          expect(attempt).toBe(retryable && (idempotent || !mutates) ? max : 1)
        },
      ),
    )
  })
})

describe("endings", () => {
  const context = { tool: toolOf({ mutates: workspaceWrite }), network: false, timeoutMs: 500 }
  // biome-ignore format: a table reads by rows
  it.each<[Exclude<Ending, { by: "exit" }>, string, string | undefined]>([
    [{ by: "signal", signal: "SIGSEGV" }, "upstream_error", undefined],
    [{ by: "limit", limit: "wall" }, "timeout", "wall"],
    [{ by: "limit", limit: "memory" }, "limit_exceeded", "memory"],
    [{ by: "limit", limit: "pids" }, "limit_exceeded", "pids"],
    [{ by: "limit", limit: "cpu" }, "limit_exceeded", "cpu"],
    [{ by: "limit", limit: "disk" }, "limit_exceeded", "disk"],
    [{ by: "limit", limit: "output" }, "limit_exceeded", "output"],
    [{ by: "cancelled" }, "cancelled", undefined],
    [{ by: "exec-denied" }, "undeclared_exec", undefined],
    [{ by: "infrastructure", message: "x" }, "internal", undefined],
  ])("reads %o as %s", (ending, code, limit) => {
    const failure = endingFailure(ending, context)
    expect(failure.code).toBe(code)
    expect(failure.details["limit"]).toBe(limit)
    expect(failure.details["commit"]).toBeUndefined()
  })

  it("says that effects outside the workspace are unknown where there can be any", () => {
    expect(endingFailure({ by: "limit", limit: "wall" }, { ...context, network: true }).details["commit"]).toBe(
      "unknown",
    )
    const outside = toolOf({ mutates: [{ class: "database", scope: "x", text: "database:x" }] })
    expect(endingFailure({ by: "limit", limit: "wall" }, { ...context, tool: outside }).details["commit"]).toBe(
      "unknown",
    )
  })
})

describe("an ending that leaves effects outside unknown", () => {
  const outside = [{ class: "database", scope: "x", text: "database:x" }]
  // biome-ignore format: a table reads by rows
  it.each([
    ["changes something outside", { mutates: outside }, false],
    ["changes the workspace, with a network", { mutates: workspaceWrite }, false],
    ["is idempotent", { mutates: outside, idempotent: true }, true],
    ["changes nothing", { mutates: [] }, true],
  ])("of a tool that %s invites a second run only where that does no harm", (_what, change, retryable) => {
    const context = { tool: toolOf(change), network: true, timeoutMs: 500 }
    for (const ending of [{ by: "limit", limit: "wall" }, { by: "infrastructure", message: "x" }] as const) {
      const failure = endingFailure(ending, context)
      expect(failure.details["commit"]).toBe("unknown")
      expect(callErrorOf(failure).retryable).toBe(retryable)
    }
    const known = endingFailure({ by: "limit", limit: "wall" }, { ...context, tool: toolOf({ mutates: workspaceWrite }), network: false })
    expect(callErrorOf(known).retryable).toBe(true)
  })
})
