/** When a call goes on to another driver. */
import { expect, it } from "vitest"
import { passOver } from "../../../../src/host/call/running/fallback.ts"
import type { Judged } from "../../../../src/host/call/steps.ts"
import { toolOf } from "../values.ts"

const failed = {
  ok: false,
  code: "upstream_error",
  message: "it broke off",
  retryable: true,
  details: { sent: true },
} as const
const judged = (tool: Parameters<typeof toolOf>[0]): Judged =>
  ({
    verdict: failed,
    attempt: { outcome: failed },
    tool: toolOf({ retry: { maxAttempts: 2 }, ...tool } as Parameters<typeof toolOf>[0]),
    driver: { key: "pay-one@1" },
    attempts: 2,
    signal: new AbortController().signal,
    command: { run: "hosted", shown: [], repeatable: true, act: () => Promise.resolve(failed) },
  }) as unknown as Judged
const outside = [{ class: "external", scope: "payments" }] as never

it("a driver whose service knows a request by its key is asked again, and no other driver in its place: to that one the key is new", () => {
  expect(passOver(judged({ idempotent: false, mutates: outside }), 0)).toBeUndefined()
})
it("what does no harm twice, or changes nothing, goes on to the next driver", () => {
  const on = [{ driver: "pay-one@1", code: "upstream_error", attempts: 2 }]
  expect(passOver(judged({ idempotent: true, mutates: outside }), 0)).toEqual(on)
  expect(passOver(judged({ idempotent: false, mutates: [] }), 0)).toEqual(on)
})
