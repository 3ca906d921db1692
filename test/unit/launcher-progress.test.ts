import { spawn } from "node:child_process"
import { once } from "node:events"
import { readFileSync } from "node:fs"
import { afterEach, expect, test, vi } from "vitest"
import { processorTime, watchProgress } from "../../src/sandbox/namespace/progress.ts"
import { until } from "../support/sealed.ts"

afterEach(() => void vi.useRealTimers())

/** A watched process that uses one tick in each of so many periods, and then none. */
const watched = (busyPeriods: number, most = 10) => {
  vi.useFakeTimers()
  const stuck = vi.fn()
  let ticks = 0
  const used = (): number => {
    ticks = Math.min(ticks + 1, busyPeriods + 1)
    return ticks
  }
  return { stuck, watch: watchProgress(used, { everyMs: 100, most }, stuck) }
}

test("a launcher that gets on a little in every period is waited for, and given up in the first one it stands still", () => {
  const { stuck } = watched(5)
  vi.advanceTimersByTime(500)
  expect(stuck).not.toHaveBeenCalled()
  vi.advanceTimersByTime(100)
  expect(stuck).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(10_000)
  expect(stuck).toHaveBeenCalledTimes(1)
})

test("a launcher that never uses the processor is given up after one period", () => {
  const { stuck } = watched(0)
  vi.advanceTimersByTime(99)
  expect(stuck).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(stuck).toHaveBeenCalledTimes(1)
})

test("a launcher that is busy without end is given up after the last period", () => {
  const { stuck } = watched(1_000, 3)
  vi.advanceTimersByTime(299)
  expect(stuck).not.toHaveBeenCalled()
  vi.advanceTimersByTime(1)
  expect(stuck).toHaveBeenCalledTimes(1)
})

test("one that got ready is not given up", () => {
  const { stuck, watch } = watched(0)
  watch.stop()
  vi.advanceTimersByTime(10_000)
  expect(stuck).not.toHaveBeenCalled()
})

test("the time of what a process started counts, and of one that is stopped it does not grow", async () => {
  const parent = spawn("/bin/sh", ["-c", "(while :; do :; done) & echo $!; wait"], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  const [line] = (await once(parent.stdout, "data")) as [Buffer]
  const busy = Number(line.toString())
  try {
    const own = parent.pid as number
    const before = processorTime(own)
    await until(() => processorTime(own) > before + 2, "the child's time is seen in the parent's")
    process.kill(busy, "SIGSTOP")
    const state = (): string => readFileSync(`/proc/${busy}/stat`, "latin1").split(") ")[1]?.[0] ?? ""
    await until(() => state() === "T", "it is stopped")
    const stopped = processorTime(busy)
    expect(stopped).toBeGreaterThan(0)
    expect(processorTime(busy)).toBe(stopped)
  } finally {
    process.kill(busy, "SIGKILL")
    parent.kill("SIGKILL")
  }
  await until(() => processorTime(busy) === 0, "one that is gone has used nothing")
})
