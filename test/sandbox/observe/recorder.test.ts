/** What is kept of a sandbox's requests where there are too many of them: whatever is left out is counted. */
import { describe, expect, it } from "vitest"
import { OBSERVE } from "../../../src/sandbox/observe/limits.ts"
import { Recorder } from "../../../src/sandbox/observe/recorder.ts"

const recorder = (isClosed = false): Recorder =>
  new Recorder({
    look: () => undefined,
    isWorkspaceClosed: () => isClosed,
    workspace: "/nowhere",
    startsScratch: false,
  })

describe("a program that asks for more than is kept", () => {
  it("has what it asked for behind that counted as lost, though each of it would be told", () => {
    const seen = recorder()
    const asked = OBSERVE.rows + 25
    for (let at = 0; at < asked; at += 1) seen.record("open", false, `/decoy-${at}`)
    const { paths, lost } = seen.told()
    expect(paths).toHaveLength(OBSERVE.rows)
    expect(lost).toBe(asked - OBSERVE.rows)
  })

  it("has every path beyond those that are told apart counted as lost", () => {
    const seen = recorder()
    for (let at = 0; at < OBSERVE.paths + 3; at += 1) seen.record("open", false, `/workspace/f/${at}`)
    const { paths, lost } = seen.told()
    expect([paths.reduce((sum, { count }) => sum + count, 0), lost]).toEqual([OBSERVE.paths, 3])
  })
})

describe("a write to the workspace", () => {
  it.each([
    [true, "denied"],
    [false, "allowed"],
  ] as const)("of one that is there to be read alone (%s) is %s", (isClosed, verdict) => {
    const seen = recorder(isClosed)
    seen.record("create", true, "/workspace/out.txt")
    expect(seen.told().paths).toMatchObject([{ path: "/workspace/out.txt", verdict }])
  })
})
