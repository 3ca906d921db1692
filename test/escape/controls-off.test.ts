/** The escape suite can fail: some controls taken out, one after the other, and the cases that then turn red. */
import { describe, expect, test } from "vitest"
import { controls } from "./controls.ts"
import { casesOf, provable, runWithout } from "./controls-off.ts"

/** A handful that is quick to run; `prove-red.ts` runs all of them. */
const shown = [
  "the filter against child processes",
  "the network namespace",
  "noexec on everything writable",
  "the ipc namespace",
  "closing inherited descriptors",
  "the masks over what the view denies",
  "settings of the kernel read-only",
  "refusing what may never be committed",
]

describe("without its control a case turns red", () => {
  test.for(controls.filter(({ name }) => shown.includes(name)))(
    "without $name",
    { timeout: 180_000 },
    async (control) => {
      const verdicts = await runWithout(control)
      const red = verdicts.filter(({ breaches }) => breaches.length > 0).map(({ name }) => name)
      expect(red.sort()).toEqual(casesOf(control).sort())
    },
  )
})

test("every control that is shown exists", () => {
  expect(controls.map(({ name }) => name)).toEqual(expect.arrayContaining(shown))
  expect(controls.filter(provable).length).toBeGreaterThan(20)
})
