import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { discoverManifests } from "../../../src/manifest/read/discover.ts"
import type { DriverContract } from "../../../src/manifest/types.ts"

let folder = ""
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-runners-")))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const put = (path: string, front: string): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), `---\n${front}\n---\n`)
}
const load = (runner: string) => {
  put(
    "d/SDK.md",
    `name: D\nid: d-one\ndescription: d\nversion: 1.0.0\nkind: sdk\npackage: lib.mjs\npackage_manager: local\nimport_style: esm\nrunner: ${runner}\nimplements:\n  - tool: t.one\n    version: ^1.0.0\n    metadata: { sdk: { function_ref: f } }`,
  )
  const [result] = discoverManifests([folder], { mode: "compat" })
  return { result, contract: result?.ok === true ? (result.manifest as DriverContract) : undefined }
}
const small = "id: small\ndescription: s\nengine: subprocess\nneeds: { npm: [yaml@2] }\nlimits: { memory_mb: 64 }"

describe("a runner that a driver names", () => {
  it.each([
    ["{ file: ./RUNNER.md }", "d/RUNNER.md"],
    ["{ file: ./run/RUNNER.md }", "d/run/RUNNER.md"],
    ["{ file: ../shared }", "shared/RUNNER.md"],
    ["{ ref: small }", ".runners/small/RUNNER.md"],
    ["small", ".runners/small/RUNNER.md"],
  ])("%s is read where it lies: %s", (runner, at) => {
    put(at, small)
    const { contract } = load(runner)
    expect(contract?.runner).toMatchObject({ form: "inline", engine: "subprocess", needs: { npm: ["yaml@2"] } })
    expect(contract?.limits).toMatchObject({ memoryMb: 64 })
  })
  it("stays a name where there is none, where it leads out, and where it is a link", () => {
    writeFileSync(join(folder, "..", "RUNNER.md"), `---\n${small}\n---\n`)
    mkdirSync(join(folder, "d"), { recursive: true })
    symlinkSync("/etc/passwd", join(folder, "d", "RUNNER.md"))
    for (const path of ["./RUNNER.md", "../../RUNNER.md", "/etc/passwd", "./none"])
      expect(load(`{ file: ${path} }`).contract?.runner).toEqual({ form: "file", file: path })
    rmSync(join(folder, "..", "RUNNER.md"))
  })
  it("is held to the same rules as one that is written in the driver", () => {
    put("d/RUNNER.md", "engine: rocket\nextra: 1")
    const { result } = load("{ file: ./RUNNER.md }")
    expect(result?.ok).toBe(false)
    expect(JSON.stringify(result?.diagnostics)).toMatch(
      /runner-engine[\s\S]*unknown-key|unknown-key[\s\S]*runner-engine/,
    )
  })
  it("is no manifest of its own", () => {
    put("d/RUNNER.md", small)
    expect(discoverManifests([folder], { mode: "compat" })).toEqual([])
  })
})
