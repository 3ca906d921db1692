import { describe, expect, it } from "vitest"
import { badOutput, keptOutputs, outputNotes } from "../../../../src/host/call/judging/files.ts"
import { sealFiles, withFileRoot } from "../../../../src/host/call/sealing/files.ts"
import type { Ran } from "../../../../src/host/call/steps.ts"
import type { Failure } from "../../../../src/host/failure.ts"
import type { ReportedEffect } from "../../../../src/host/types.ts"
import type { FileContract, FilePath } from "../../../../src/manifest/base-types.ts"
import type { TakenOutput } from "../../../../src/sandbox/backend.ts"
import { toolOf } from "../values.ts"

const file = (path: string, mode: FileContract["mode"] = "ro"): FileContract => ({ path: path as FilePath, mode })
/** 2026-04-29 */
const call = "01KQBZF600AAAAAAAAAAAAAAAA"

describe("the files of one call", () => {
  it("have their tokens filled in, and are writable where they go out as well", () => {
    const tool = toolOf({
      id: "a.b",
      inputsFiles: { one: file("in/<runId>"), two: file("in/two", "rw"), three: file("in/three") },
      outputsFiles: { three: file("out/<toolId>/<workflowId>/<isoDate>") },
    })
    expect(sealFiles(tool, call, [])).toEqual({
      ok: true,
      value: {
        inputs: [
          { name: "one", path: `in/${call}`, writable: false },
          { name: "two", path: "in/two", writable: true },
          { name: "three", path: "in/three", writable: true },
        ],
        outputs: [{ name: "three", path: "out/a.b/a.b/2026-04-29" }],
      },
    })
  })
  it("are none where the contract has none", () => {
    expect(sealFiles(toolOf(), call, ["**"])).toEqual({ ok: true, value: undefined })
    expect(withFileRoot(toolOf(), { _workflowFsRoot: "mine" })).toEqual({ _workflowFsRoot: "mine" })
  })
  it("are told by the host alone", () => {
    const tool = toolOf({ inputsFiles: { a: file("a") } })
    expect(withFileRoot(tool, { _workflowFsRoot: "/etc", x: 1 })).toEqual({
      _workflowFsRoot: "/tmp/caisson-files",
      x: 1,
    })
  })
  it.each([["in/**"], ["**/a.txt"], ["in"], ["x/**y"]])(
    "are refused where the driver denies itself one: %s",
    (pattern) => {
      const tool = toolOf({ inputsFiles: { a: file("in/a.txt") } })
      const expected = { ok: false, code: "policy_violation" }
      expect(sealFiles(tool, call, [pattern])).toMatchObject(expected)
      const out = toolOf({ outputsFiles: { a: file("in/a.txt") } })
      expect(sealFiles(out, call, [pattern])).toMatchObject(expected)
    },
  )
  it("are refused where a token makes two outputs one", () => {
    const tool = toolOf({ outputsFiles: { a: file("out/<isoDate>"), b: file("out/2026-04-29") } })
    expect(sealFiles(tool, call, [])).toMatchObject({ ok: false, code: "manifest_invalid" })
  })
})

const written = (path: string): TakenOutput => ({ name: path, path, state: "written", size: 1, digest: "sha256:x" })
const effect = (kind: ReportedEffect["kind"], path: string, declared = true): ReportedEffect => ({
  kind,
  path,
  declared,
  committed: false,
})
const ran = (outputs: readonly TakenOutput[], more: object = {}): Ran =>
  ({
    attempt: { exited: { exchanged: { inputs: [], outputs } } },
    plan: false,
    approval: { onEffects: "commit" },
    ...more,
  }) as unknown as Ran
const failure = (code: string): Failure => ({ ok: false, code: code as Failure["code"], message: "", details: {} })

describe("of a tool that failed", () => {
  const out = [written("out/a")]
  const effects = [effect("mkdir", "out"), effect("create", "out/a"), effect("create", "notes/b")]

  it("the files that it gives out are kept, with their folders, and nothing else", () => {
    for (const code of ["upstream_error", "output_invalid", "output_parse_failed", "cli:on_purpose"])
      expect(keptOutputs(ran(out), failure(code), effects)).toEqual(["out/a", "out"])
  })
  it.each<readonly [string, ReturnType<typeof keptOutputs>, () => ReturnType<typeof keptOutputs>]>([
    ["it was stopped in time", undefined, () => keptOutputs(ran(out), failure("timeout"), effects)],
    ["it hit a limit", undefined, () => keptOutputs(ran(out), failure("limit_exceeded"), effects)],
    ["it broke its contract", undefined, () => keptOutputs(ran(out), failure("undeclared_write"), effects)],
    ["the host failed", undefined, () => keptOutputs(ran(out), failure("internal"), effects)],
    ["it is a plan", undefined, () => keptOutputs(ran(out, { plan: true }), failure("upstream_error"), effects)],
    [
      "somebody has to be asked",
      undefined,
      () => keptOutputs(ran(out, { approval: { onEffects: "ask" } }), failure("upstream_error"), effects),
    ],
    ["none was left", undefined, () => keptOutputs(ran([]), failure("upstream_error"), effects)],
    [
      "it is not declared",
      undefined,
      () => keptOutputs(ran(out), failure("upstream_error"), [effect("create", "out/a", false)]),
    ],
    ["it changed nothing", undefined, () => keptOutputs(ran(out), failure("upstream_error"), [])],
    [
      "the tool put something in its folder's place",
      undefined,
      () =>
        keptOutputs(ran(out), failure("upstream_error"), [
          effect("rmdir", "out"),
          effect("mkdir", "out"),
          effect("create", "out/a"),
        ]),
    ],
    [
      "its folder may not be made",
      undefined,
      () =>
        keptOutputs(ran(out), failure("upstream_error"), [effect("mkdir", "out", false), effect("create", "out/a")]),
    ],
  ])("nothing is kept where %s", (_why, expected, keep) => {
    expect(keep()).toEqual(expected)
  })
})

it("what was left instead of files is told", () => {
  const outputs: readonly TakenOutput[] = [
    { name: "a", path: "a", state: "absent" },
    { name: "b", path: "b", state: "failed", why: "there is no room for it" },
    { name: "c", path: "c", state: "unchanged", size: 1, digest: "" },
  ]
  const { exited } = ran(outputs).attempt
  expect(outputNotes(exited)).toEqual([
    "the tool left no file as its output `a`",
    "the output `b` was not written to `b`: there is no room for it",
  ])
  expect(badOutput(exited)).toBeUndefined()
  const bad = ran([...outputs, { name: "d", path: "d", state: "refused", why: "a pipe" }]).attempt.exited
  expect(badOutput(bad)).toMatchObject({ code: "output_invalid", details: { file: "d" } })
})
