import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { callsFolder } from "../../../src/data-folder/paths.ts"
import { isAbandoned, markUnderWay, removeAbandoned } from "../../../src/host/record/under-way.ts"

describe("markers of calls that are under way", () => {
  let data: string
  beforeEach(() => {
    data = mkdtempSync(join(tmpdir(), "caisson-under-way-"))
    mkdirSync(callsFolder(data))
  })
  afterEach(() => rmSync(data, { recursive: true }))
  const [living, dead] = ["01J00000000000000000000001", "01J00000000000000000000002"] as const
  const left = (): string[] => readdirSync(callsFolder(data)).sort()

  it("are removed where nobody holds them, also of a call that never came on record, and no others are", () => {
    using _living = markUnderWay(data, living)
    writeFileSync(join(callsFolder(data), `${dead}.key`), "")
    writeFileSync(join(callsFolder(data), "something-else.key"), "")
    removeAbandoned(data)
    expect(left()).toEqual([`${living}.key`, "something-else.key"])
    expect([isAbandoned(data, living), isAbandoned(data, dead)]).toEqual([false, true])
  })

  it("are gone when their call has ended", () => {
    markUnderWay(data, living)[Symbol.dispose]()
    expect(left()).toEqual([])
    expect(isAbandoned(data, living)).toBe(true)
  })
})
