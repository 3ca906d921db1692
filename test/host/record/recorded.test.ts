import { closeSync, fstatSync, mkdirSync, mkdtempSync, openSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { callsFolder } from "../../../src/data-folder/paths.ts"
import { processCaller } from "../../../src/host/index.ts"
import { hostLimits } from "../../../src/host/limits.ts"
import { RecordedCalls } from "../../../src/host/record/recorded.ts"
import { markUnderWay } from "../../../src/host/record/under-way.ts"
import type { Store } from "../../../src/host/store/store.ts"
import type { Envelope } from "../../../src/host/types.ts"

describe("what calls with a key answered while the store could not be used", () => {
  let data: string
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), "caisson-recorded-"))
    mkdirSync(callsFolder(data))
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
    rmSync(data, { recursive: true })
  })

  it("is kept by one at a time, and let go of once, though the store takes longer than a look", async () => {
    const slow: PromiseWithResolvers<void>[] = []
    let isUsable = false
    const store = {
      admit: async () => ({ ok: true }),
      settleCall: async () => {
        if (!isUsable) throw new Error("the store cannot be used")
        const answer = Promise.withResolvers<void>()
        slow.push(answer)
        await answer.promise
      },
    } as unknown as Store
    const recorded = new RecordedCalls(data, { store: async () => store, storeIsUsed: () => true }, true)
    const envelope = { ok: true, value: 1, effects: [], denied: [], receipt: "none" } as unknown as Envelope
    const asked = { call: "01J00000000000000000000001", caller: processCaller("alice"), key: "once" }
    const begun = await recorded.begin(
      { ...asked, request: { tool: "a.b", input: {}, workspace: data } },
      async () => envelope,
    )
    await begun.envelope
    isUsable = true
    await vi.advanceTimersByTimeAsync(5 * hostLimits.keepAgainMs.value)
    expect(slow).toHaveLength(1)
    for (const { resolve } of slow) resolve()
    await recorded.settled()
    await vi.advanceTimersByTimeAsync(5 * hostLimits.keepAgainMs.value)
    expect(slow).toHaveLength(1)
    expect(readdirSync(callsFolder(data))).toEqual([])
    await recorded.close()
  })

  it("is held by a marker that closes nobody else's file, whoever lets go of it again", () => {
    const marker = markUnderWay(data, "01J00000000000000000000001")
    marker[Symbol.dispose]()
    const others = openSync(data, "r")
    marker[Symbol.dispose]()
    expect(fstatSync(others).isDirectory()).toBe(true)
    closeSync(others)
  })
})
