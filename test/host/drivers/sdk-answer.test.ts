import { describe, expect, it } from "vitest"
import { outcomeOf, Parts } from "../../../src/host/drivers/sdk/answer.ts"
import type { RunnerAnswer, Thrown } from "../../../src/host/drivers/runner/talk.ts"
import { parseExtract } from "../../../src/manifest/templates/extract.ts"
import type { AuthSpec, JsonObject, JsonValue } from "../../../src/manifest/types.ts"
import { toolOf } from "../call/values.ts"

const state = { paths: [], env: [] }
interface Over {
  readonly expiry?: NonNullable<AuthSpec["expiry"]>
  readonly outputs?: JsonObject
  readonly extract?: string
  readonly mode?: "async-iterator" | "callback"
}
const ask = (answer: RunnerAnswer, parts: readonly JsonValue[] = [], over: Over = {}) => {
  const asked = {
    key: "d@1",
    tool: toolOf({ outputs: over.outputs ?? {} }),
    auth: over.expiry === undefined ? undefined : { state, expiry: over.expiry },
    sdk: {
      functionRef: ["f"],
      arguments: { style: "input" },
      extract: parseExtract(over.extract ?? "$") ?? [],
      ...(over.mode === undefined ? {} : { streaming: { mode: over.mode } }),
    },
  } as const
  const told: JsonValue[] = []
  const kept = new Parts(asked, (event) => void (event.type === "progress" && told.push(event.value)))
  for (const part of parts) kept.add(part)
  return { outcome: outcomeOf(asked, answer, kept), told }
}
const thrown = (over: Partial<Thrown>): RunnerAnswer => ({
  ok: false,
  kind: "thrown",
  thrown: { names: ["Gone", "Refused", "Error"], message: "what the caller gave", where: "call", ...over },
})

describe("what came of a function", () => {
  it.each([
    ["of another name", { by: "exception", name: "Other" }, {}, "upstream_error"],
    ["of its own name", { by: "exception", name: "Gone" }, {}, "auth_required"],
    ["of a class above", { by: "exception", name: "Refused" }, {}, "auth_required"],
    ["with the status", { by: "http_status", status: 401 }, { status: 401 }, "auth_required"],
    ["with another status", { by: "http_status", status: 401 }, { status: 403 }, "upstream_error"],
    ["before the call", { by: "exception", name: "Gone" }, { where: "load" }, "tool_unavailable"],
    ["not found", undefined, { where: "resolve" }, "function_ref_unresolvable"],
    ["told to wait", undefined, { status: 429 }, "rate_limited"],
    ["no JSON", undefined, { where: "result" }, "output_parse_failed"],
    ["too large", undefined, { where: "result", names: ["ResultTooLarge"] }, "limit_exceeded"],
  ] as const)("an exception %s", (_what, expiry, over, code) => {
    const { outcome } = ask(thrown(over as Partial<Thrown>), [], expiry === undefined ? {} : { expiry })
    expect(outcome).toMatchObject({ ok: false, code })
    if (code === "upstream_error" || code === "auth_required")
      expect(!outcome.ok && outcome.message).not.toContain("what the caller gave")
  })
  it("may be tried again where the service failed", () => {
    expect(ask(thrown({ status: 503 })).outcome).toMatchObject({ code: "upstream_error", retryable: true })
  })
  it.each([
    [{ ok: false, kind: "protocol", message: "m" }, "upstream_error"],
    [{ ok: false, kind: "silent", message: "m" }, "upstream_error"],
    [{ ok: false, kind: "limit", message: "m" }, "limit_exceeded"],
  ] as [RunnerAnswer, string][])("%j is told as that", (answer, code) => {
    expect(ask(answer).outcome).toMatchObject({ ok: false, code })
  })

  it.each([
    ["what its iterator returned", 7, [1, 2], {}, 7],
    ["the list of its parts", null, [1, 2], { outputs: { type: "array" } }, [1, 2]],
    ["the last of its parts", null, [1, 2], {}, 2],
    ["nothing", null, [], {}, null],
    [
      "its parts as they are taken",
      null,
      [{ n: 1 }, { x: 1 }, { n: 2 }],
      { extract: "$.n", outputs: { type: "array" } },
      [1, 2],
    ],
  ] as [string, JsonValue, JsonValue[], Over, JsonValue][])(
    "a stream comes to %s",
    (_what, value, parts, over, expected) => {
      const { outcome, told } = ask({ ok: true, value, streamed: true }, parts, { mode: "async-iterator", ...over })
      expect(outcome).toMatchObject({ ok: true, value: expected })
      expect(told).toHaveLength(parts.length - (over.extract === undefined ? 0 : 1))
    },
  )
})
