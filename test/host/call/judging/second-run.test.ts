/** Which failed calls invite a second run. */
import { describe, expect, it } from "vitest"
import { notInvited } from "../../../../src/host/call/judging/second-run.ts"
import { callErrorOf, type Failure } from "../../../../src/host/failure.ts"
import { outcomeOf, Parts } from "../../../../src/host/drivers/sdk/answer.ts"
import { toolOf } from "../values.ts"

const outside = [{ class: "external", scope: "orders", text: "external:orders" }]
const inside = [{ class: "workspace", scope: "/notes/*", text: "workspace:/notes/*" }]
const program = { run: "program", argv: [], stdin: new Uint8Array(), format: "text", read: () => failed({}) } as const
const keyed = { run: "hosted", shown: [], repeatable: true, act: async () => failed({}) } as const
const failed = (over: Partial<Failure>): Failure => ({
  ok: false,
  code: "upstream_error",
  message: "m",
  retryable: true,
  details: {},
  ...over,
})
const told = (end: Failure, tool: Parameters<typeof toolOf>[0], command: typeof program | typeof keyed = program) => {
  const ended = notInvited({ tool: toolOf(tool), command }, end)
  if (ended.ok) throw new Error("a failure became none")
  return { retryable: callErrorOf(ended).retryable, commit: ended.details["commit"] }
}

describe("a call that ran and failed", () => {
  it("and asked for one that may have changed something elsewhere, whatever its own contract says", () => {
    const nesting = {
      depth: 0,
      left: { calls: 1 },
      made: [],
      mayHaveChanged: true,
      make: () => Promise.reject(new Error()),
    }
    for (const end of [failed({}), failed({ undone: true })]) {
      const ended = notInvited({ tool: toolOf({ mutates: [], idempotent: true }), command: program, nesting }, end)
      expect(ended).toMatchObject({ ok: false, retryable: false, details: { commit: "unknown" } })
    }
  })
  const unknown = { retryable: false, commit: "unknown" }
  const plain = { retryable: true, commit: undefined }
  // biome-ignore format: a table reads by rows
  it.each([
    ["says that another try may help", failed({}), { mutates: outside }, unknown],
    ["has a code that invites by itself", failed({ code: "timeout" }), { mutates: outside }, unknown],
    ["claims to have been asked to wait", failed({ code: "rate_limited" }), { mutates: outside }, unknown],
    ["could not be committed", failed({ code: "commit_failed" }), { mutates: outside }, unknown],
    ["met a change of its workspace", failed({ code: "conflict" }), { mutates: outside }, unknown],
    ["is known not to have been done", failed({ undone: true }), { mutates: outside }, plain],
    ["does no harm twice", failed({}), { mutates: outside, idempotent: true }, { retryable: true, commit: "unknown" }],
    ["changes the workspace alone, which is undone", failed({}), { mutates: inside }, plain],
    ["changes nothing", failed({}), { mutates: [] }, plain],
  ])("and %s", (_what, end, tool, expected) => {
    expect(told(end, tool)).toEqual(expected)
  })
  it("is invited again by the key that its service knows it by", () => {
    expect(told(failed({}), { mutates: outside }, keyed)).toEqual({ retryable: true, commit: "unknown" })
  })
  it("whose function threw the service's 5xx is invited again only where nothing outside may have changed", () => {
    const asked = {
      key: "d@1",
      tool: toolOf({}),
      auth: undefined,
      sdk: { functionRef: ["f"], arguments: { style: "input" }, extract: [] },
    } as const
    const thrown = { names: ["ServerError"], message: "", where: "call", status: 502 } as const
    const end = outcomeOf(asked, { ok: false, kind: "thrown", thrown }, new Parts(asked, () => undefined))
    expect(told(end as Failure, { mutates: outside })).toEqual(unknown)
    expect(told(end as Failure, { mutates: [] })).toEqual(plain)
  })
  it("is left as it is where a person's yes is all that is missing", () => {
    const asking = failed({ code: "approval_required", retryable: false })
    expect(notInvited({ tool: toolOf({ mutates: outside }), command: program }, asking)).toBe(asking)
  })
})
