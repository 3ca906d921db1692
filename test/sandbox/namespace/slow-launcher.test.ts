import { Socket } from "node:net"
import { afterEach, beforeEach, expect, test, vi } from "vitest"
import type { Launched } from "../../../src/sandbox/namespace/launch.ts"
import { letGo } from "../../../src/sandbox/namespace/let-go.ts"
import { LAUNCHER } from "../../../src/sandbox/namespace/launcher/limits.ts"
import type { Answer, RunAnswer } from "../../../src/sandbox/namespace/launcher/protocol.ts"
import { startRun } from "../../../src/sandbox/namespace/running.ts"

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

/** A launcher that answers when the test says so, and uses the processor as the test says. */
const slow = () => {
  const answers = new Map<string, (answer: Answer) => void>()
  let stuck = (): void => undefined
  const launched = {
    ask: ({ op }: { op: string }) => new Promise<Answer>((resolve) => answers.set(op, resolve)),
    watch: (whenStuck: () => void) => {
      stuck = whenStuck
      return { stop: () => (stuck = () => undefined) }
    },
  } as unknown as Launched
  const answer = (op: string, said: object): void => answers.get(op)?.(said as Answer)
  return { launched, answer, stands: () => stuck() }
}
const longer = (): Promise<unknown> => vi.advanceTimersByTimeAsync(LAUNCHER.stopMs * 3)

const cancelled: RunAnswer = { ok: true, ending: { by: "cancelled" }, denied: [], usage: { wallMs: 1 } }
const run = (launched: Launched, cancel: AbortSignal) =>
  startRun({
    launched,
    request: { op: "run", sandbox: 1 } as Parameters<typeof startRun>[0]["request"],
    streams: { stdin: new Socket(), stdout: new Socket(), stderr: new Socket() },
    terminal: undefined,
    cancel,
    ended: () => undefined,
  })

test("a cancelled run waits for a launcher that gets on, however slowly: its processes are then seen to end", async () => {
  const { launched, answer } = slow()
  const over = vi.fn()
  const running = run(launched, AbortSignal.abort()).then(over)
  await longer()
  expect(over).not.toHaveBeenCalled()
  answer("run", cancelled)
  await running
  expect(over).toHaveBeenCalled()
})

test("a cancelled run does not wait for a launcher that stands still", async () => {
  const { launched, stands } = slow()
  const running = run(launched, AbortSignal.abort())
  stands()
  expect(await ((await running) as { exited: Promise<unknown> }).exited).toMatchObject({ ending: { by: "cancelled" } })
})

test("letting go of a sandbox waits for a launcher that gets on, and not for one that stands still", async () => {
  const [first, second] = [slow(), slow()]
  const [gone, given] = [vi.fn(), vi.fn()]
  const letting = [letGo(first.launched, 1).then(gone), letGo(second.launched, 1).then(given)]
  await longer()
  expect([gone.mock.calls.length, given.mock.calls.length]).toEqual([0, 0])
  first.answer("discard", { ok: true })
  second.stands()
  await Promise.all(letting)
})
