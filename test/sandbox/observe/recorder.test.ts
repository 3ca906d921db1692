/** What is told of a sandbox's requests where there are too many of them: nothing is hidden behind the rest. */
import { describe, expect, it } from "vitest"
import type { ObservedPath } from "../../../src/sandbox/observe/observed.ts"
import { OBSERVE } from "../../../src/sandbox/observe/limits.ts"
import { Recorder } from "../../../src/sandbox/observe/recorder.ts"

const recorder = (isClosed = false): Recorder =>
  new Recorder({
    look: () => undefined,
    isWorkspaceClosed: () => isClosed,
    workspace: "/nowhere",
    startsScratch: false,
  })

describe("a program that asks for more than is told one by one", () => {
  const keys = "/home/tool/.ssh/id_rsa"
  const rowOf = ({ paths }: ReturnType<Recorder["told"]>, path: string): ObservedPath | undefined =>
    paths.find((row) => row.path === path)

  it("has each of it told by its folder, and counted", () => {
    const seen = recorder()
    const asked = OBSERVE.rows + 25
    for (let at = 0; at < asked; at += 1) seen.record("open", false, `/srv/decoys/${at}`)
    const { paths, lost } = seen.told()
    expect(paths).toEqual([
      {
        path: "/srv/decoys",
        op: "read",
        verdict: "denied",
        reason: "not_shown",
        notable: true,
        folder: true,
        count: asked,
      },
    ])
    expect(lost).toBe(asked)
  })

  it("costs no more memory with long paths than with short ones", () => {
    let looks = 0
    const seen = new Recorder({
      look(path) {
        if (path === keys) looks += 1
        return undefined
      },
      isWorkspaceClosed: () => false,
      workspace: "/nowhere",
      startsScratch: false,
    })
    const long = "x".repeat(4000)
    const flood = (count: number, mark: string): void => {
      for (let at = 0; at < count; at += 1) seen.record("open", false, `/srv/${mark}${at}/${long}`)
    }
    const most = Math.floor(OBSERVE.pathChars / (long.length + 20))
    seen.record("open", false, keys)
    flood(most - 10, "a")
    seen.record("open", false, keys)
    expect(looks).toBe(1)
    flood(most, "b")
    seen.record("open", false, keys)
    expect(looks).toBe(2)
    expect(rowOf(seen.told(), keys)).toMatchObject({ count: 3 })
  })

  it.each([
    ["in one folder", (at: number) => `/srv/decoys/${at}`],
    ["in as many folders", (at: number) => `/srv/${at}/decoy`],
    ["at the root", (at: number) => `/decoy-${at}`],
    ["beside the keys", (at: number) => `/home/tool/.decoys/${at}`],
    ["in the workspace", (at: number) => `/workspace/a/${at}`],
  ])("does not hide behind it what it asks for then: %s", (_, decoy) => {
    const seen = recorder()
    const flood = OBSERVE.paths + 100
    for (let at = 0; at < flood; at += 1) seen.record("open", false, decoy(at))
    seen.record("open", false, keys)
    for (let at = flood; at < 2 * flood; at += 1) seen.record("open", false, decoy(at))
    const told = seen.told()
    expect(rowOf(told, keys)).toMatchObject({ verdict: "denied", reason: "not_shown", count: 1 })
    expect(told.paths.length).toBeLessThanOrEqual(OBSERVE.rows)
    expect(told.paths.reduce((sum, { count }) => sum + count, 0)).toBe(2 * flood + 1)
  })

  it("has the folder of the keys told where it asks for as many keys as that", () => {
    const seen = recorder()
    for (let at = 0; at < 2 * OBSERVE.paths; at += 1) seen.record("open", false, `/home/tool/.ssh/${at}/x`)
    seen.record("open", false, keys)
    const { paths, lost } = seen.told()
    expect(paths[0]).toMatchObject({ path: "/home/tool/.ssh", folder: true, notable: true, count: 2 * OBSERVE.paths })
    expect(paths.slice(1).map(({ path }) => path)).toEqual([keys])
    expect(lost).toBe(2 * OBSERVE.paths)
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
