import { setImmediate as turn } from "node:timers/promises"
import { expect, it } from "vitest"
import { CallEvents } from "../../../src/host/call/events.ts"
import type { CallEvent } from "../../../src/host/events.ts"
import { hostLimits } from "../../../src/host/limits.ts"

const output = (size: number) => ({ type: "output", stream: "stdout", bytes: new Uint8Array(size) }) as const

it("an observer hears in order, between the steps and not in them", async () => {
  const heard: CallEvent[] = []
  const events = new CallEvents("01J", (event) => heard.push(event))
  events.tell({ type: "admitted", tool: "a@1" })
  events.tell({ type: "started", attempt: 1 })
  expect(heard).toEqual([])
  await turn()
  await turn()
  expect(heard).toMatchObject([
    { seq: 0, call: "01J", type: "admitted" },
    { seq: 1, call: "01J", type: "started" },
  ])
})

it.each([
  [
    "throws",
    () => {
      throw new Error("on purpose")
    },
  ],
  ["rejects", () => Promise.reject(new Error("on purpose"))],
])("an observer that %s ends nothing, and goes on hearing", async (_how, fail) => {
  let heard = 0
  const events = new CallEvents("01J", () => {
    heard += 1
    return fail() as never
  })
  events.tell({ type: "started", attempt: 1 })
  events.tell({ type: "started", attempt: 2 })
  events.flush()
  await turn()
  expect(heard).toBe(2)
})

it("output that nobody hears in time is dropped and counted, and nothing else is", () => {
  const heard: CallEvent[] = []
  const events = new CallEvents("01J", (event) => heard.push(event))
  const most = hostLimits.eventOutputBytes.value
  events.tell(output(most - 1))
  events.tell(output(1))
  events.tell(output(1))
  events.tell(output(6))
  events.tell({ type: "judged", verdict: "ok", effects: 0 })
  events.flush()
  expect(heard.map(({ type }) => type)).toEqual(["output", "output", "judged"])
  events.tell(output(2))
  events.tell(output(3))
  events.flush()
  expect(heard.slice(3)).toMatchObject([{ dropped: 7 }, { type: "output" }])
  expect(heard.at(-1)).not.toHaveProperty("dropped")
  expect(heard.map(({ seq }) => seq)).toEqual([0, 1, 2, 3, 4])
})

it("many small pieces of output take no more room than few large ones", () => {
  let heard = 0
  const events = new CallEvents("01J", () => (heard += 1))
  for (let n = 0; n < 10 * hostLimits.eventQueue.value; n += 1) events.tell(output(1))
  events.flush()
  expect(heard).toBe(hostLimits.eventQueue.value)
})

it("of denials a number is told", () => {
  let heard = 0
  const events = new CallEvents("01J", () => (heard += 1))
  const denial = { layer: "egress", reason: "r", target: "t", count: 1 } as const
  for (let n = 0; n < hostLimits.eventDenials.value + 5; n += 1) events.tell({ type: "denied", denial })
  events.flush()
  expect(heard).toBe(hostLimits.eventDenials.value)
})

it("what is told is a copy: a buffer used again changes nothing", () => {
  const heard: CallEvent[] = []
  const events = new CallEvents("01J", (event) => heard.push(event))
  const bytes = Buffer.from("first")
  events.tell({ type: "output", stream: "stderr", bytes })
  bytes.write("other")
  events.flush()
  expect(heard[0]).toMatchObject({ stream: "stderr", bytes: new Uint8Array(Buffer.from("first")) })
})
