/** Which calls are run once more after their login was refreshed. */
import { describe, expect, it } from "vitest"
import { renew } from "../../../src/host/call/renew.ts"
import type { HostCore } from "../../../src/host/call/core.ts"
import type { Judged } from "../../../src/host/call/steps.ts"
import type { Failure } from "../../../src/host/failure.ts"
import { scopes, toolOf } from "./values.ts"

const refreshed = { logins: { expired: async () => ({ end: "refreshed" }) } } as unknown as HostCore
const refused = (over: Partial<Failure>): Failure => ({
  ok: false,
  code: "auth_required",
  message: "m",
  details: { status: 401 },
  expiry: "expired",
  ...over,
})
const judgedBy = (outcome: Failure, more: object = {}): Judged =>
  ({
    tool: toolOf({ mutates: scopes("external:orders"), idempotent: false }),
    command: { run: "hosted", shown: [] },
    driver: { key: "d@1" },
    caller: { user: "u", actor: "u", roles: [] },
    user: "u",
    freshness: 1,
    signal: new AbortController().signal,
    verdict: outcome,
    attempt: { outcome },
    ...more,
  }) as unknown as Judged

describe("a call that changes something elsewhere, whose login was refreshed", () => {
  it("is run again where the service refused the request itself", async () => {
    expect(await renew(refreshed, judgedBy(refused({ undone: true })), "yes")).toEqual({ again: true })
  })
  it("is not where the login was refused only after it may have been done", async () => {
    expect(await renew(refreshed, judgedBy(refused({})), "yes")).toMatchObject({
      again: false,
      judged: { verdict: { code: "upstream_error", retryable: false } },
    })
  })
  it("is where a second run does no harm", async () => {
    const tool = toolOf({ mutates: scopes("external:orders"), idempotent: true })
    expect(await renew(refreshed, judgedBy(refused({}), { tool }), "yes")).toEqual({ again: true })
  })
})
