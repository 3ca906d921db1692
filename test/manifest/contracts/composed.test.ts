/** Drivers that are composed by `code` and `run`, and CODE.md files (AIP-26). */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { discoverManifests } from "../../../src/manifest/read/discover.ts"
import type { DriverContract, LoadResult } from "../../../src/manifest/types.ts"
import { errors, toolFront } from "../from-text.ts"

let folder = ""
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-code-")))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const put = (path: string, front: string): void => {
  mkdirSync(dirname(join(folder, path)), { recursive: true })
  writeFileSync(join(folder, path), `---\n${front}\n---\n`)
}
const driverFront = (more: string, kind = "sdk"): string =>
  `name: D\nid: d-one\ndescription: d\nversion: 1.0.0\nkind: ${kind}\nimplements: [{ tool: t.one, version: ^1.0.0 }]\n${more}`
const find = (results: readonly LoadResult[], file: string): LoadResult | undefined =>
  results.find((each) => (each.ok ? each.manifest.source.file : each.file) === join(folder, file))
const load = (mode: "strict" | "compat" = "strict") => discoverManifests([folder], { mode })
const composed = (more: string): DriverContract => {
  put("d/DRIVER.md", driverFront(more))
  const result = find(load(), "d/DRIVER.md")
  if (result?.ok !== true) throw new Error(JSON.stringify(result?.diagnostics))
  return result.manifest as DriverContract
}

describe("a driver with `code` and `run`", () => {
  // biome-ignore format: a table reads by rows
  it.each([
    ["tool.ts", "tool.ts", "esm"],
    ["./src//tool.mjs", "src/tool.mjs", "esm"],
    ["tool.cjs", "tool.cjs", "cjs"],
    ["tool.py", "tool.py", "python"],
    ["python search.py", "search.py", "python"],
    ['["node", "tool.js"]', "tool.js", "esm"],
    ["{ exec: [python3, tool.py] }", "tool.py", "python"],
    ["{ file: tool.ts }", "tool.ts", "esm"],
    ["{ shell: node tool.js }", "tool.js", "esm"],
  ])("`run: %s` is its file %s, loaded as %s", (run, file, style) => {
    const { body, bundle, implements: entries } = composed(`run: ${run}`)
    expect(body).toMatchObject({ kind: "sdk", sdk: { package: file, packageManager: "local", importStyle: style } })
    expect(bundle).toEqual({ run: file, sources: [{ from: "local", bases: [join(folder, "d"), folder], path: "." }] })
    expect(entries).toMatchObject([{ sdk: { functionRef: ["default"] } }])
  })
  // biome-ignore format: a table reads by rows
  it.each([
    ["a shell's command line", "run: npm run build && node x.js", "run", /command line/],
    ["options of a program", 'run: ["python", "-m", "mytool"]', "run", /command line/],
    ["another program's file", "run: tool.sh", "run", /no file of Node's or Python's/],
    ["a file outside", "run: ../tool.ts", "run", /leads out/],
    ["an absolute file", "run: /bin/tool.ts", "run", /leads out/],
    ["nothing to run", "code: { sources: [{ local: . }] }", "run", /says no file/],
    ["code from GitHub", "code: { sources: [{ github: { repo: a/b, ref: main } }] }\nrun: a.ts", "code.sources[0].github", /GitHub/],
    ["a reference that leads nowhere", "code: ./shared\nrun: a.ts", "code", /no CODE\.md/],
    ["a reference that climbs", "code: ../shared\nrun: a.ts", "code", /no CODE\.md/],
    ["a folder outside", "code: { sources: [{ local: ../x }] }\nrun: a.ts", "code.sources[0].local", /leads out/],
    ["an absolute folder", "code: { sources: [{ local: /etc }] }\nrun: a.ts", "code.sources[0].local", /leads out/],
    ["a target outside", "code: { sources: [{ local: { path: x, as: ../y } }] }\nrun: a.ts", "code.sources[0].local", /leads out/],
    ["an inline file outside", "code: { sources: [{ inline: { path: ../a, content: x } }] }\nrun: a.ts", "code.sources[0].inline", /leads out/],
    ["an inline file without text", "code: { sources: [{ inline: { path: a.ts } }] }\nrun: a.ts", "code.sources[0].inline", /is text/],
    ["an inline file with a null byte", 'code: { sources: [{ inline: { path: a.ts, content: "a\\0b" } }] }\nrun: a.ts', "code.sources[0].inline", /is text/],
    ["two kinds of one source", "code: { sources: [{ local: a, ref: b }] }\nrun: a.ts", "code.sources[0]", /one of/],
    ["no sources", "code: { sources: [] }\nrun: a.ts", "code", /no sources/],
    ["a package beside it", "run: a.ts\npackage: a.ts\npackage_manager: local", "package", /at once/],
  ])("%s is refused by name, and never serves", (_what, more, path, message) => {
    put("d/DRIVER.md", driverFront(more))
    const strict = find(load(), "d/DRIVER.md")
    expect(strict === undefined ? [] : errors(strict)).toEqual([`driver-code @ ${path}`])
    const lenient = find(load("compat"), "d/DRIVER.md")
    expect(lenient?.ok === true && (lenient.manifest as DriverContract).unusable).toMatch(message)
  })
  it("takes sources in their order, with those of a CODE.md where that is named", () => {
    put(
      ".code/shared/CODE.md",
      "kind: code-workspace\nname: shared\ncode: { sources: [{ local: { path: lib, as: lib } }] }",
    )
    const { bundle } = composed(
      "code: { sources: [{ inline: { path: a.ts, content: one } }, { ref: shared }, { inline: { path: a.ts, content: two } }] }\nrun: a.ts",
    )
    expect(bundle?.sources).toEqual([
      { from: "inline", path: "a.ts", content: "one" },
      { from: "local", bases: [join(folder, ".code/shared"), folder], path: "lib", as: "lib" },
      { from: "inline", path: "a.ts", content: "two" },
    ])
  })
  it("refuses references that lead in a circle, or too far", () => {
    put("a/CODE.md", "name: a\ncode: b")
    put("b/CODE.md", "name: b\ncode: a")
    put("d/DRIVER.md", driverFront("code: a\nrun: x.ts"))
    const circle = find(load("compat"), "d/DRIVER.md")
    expect(circle?.ok === true && (circle.manifest as DriverContract).unusable).toMatch(/leads back to itself/)
    for (let i = 0; i < 8; i += 1) put(`c${i}/CODE.md`, `name: c${i}\ncode: c${i + 1}`)
    put("d/DRIVER.md", driverFront("code: c0\nrun: x.ts"))
    const far = find(load("compat"), "d/DRIVER.md")
    expect(far?.ok === true && (far.manifest as DriverContract).unusable).toMatch(/lead further/)
  })
  it("has from its CODE.md what it does not say itself, and of what both say the less", () => {
    put(
      "s/CODE.md",
      "name: s\nsource: { local: . }\nnetwork: { egress: [a.test, b.test] }\nrunner: { limits: { memory_mb: 100, timeout_ms: 900 } }\nsecrets: { API_KEY: { vault: api-key } }",
    )
    const silent = composed("code: s\nrun: x.ts")
    expect(silent.egress.map(({ text }) => text)).toEqual(["a.test", "b.test"])
    expect(silent.limits).toMatchObject({ memoryMb: 100, timeoutMs: 900 })
    expect(silent.auth?.state.env).toEqual(["API_KEY"])
    const own = composed(
      "code: s\nrun: x.ts\nnetwork: { egress: [b.test, c.test] }\nrunner: { limits: { memory_mb: 500, timeout_ms: 100 } }",
    )
    expect(own.egress.map(({ text }) => text)).toEqual(["b.test"])
    expect(own.limits).toMatchObject({ memoryMb: 100, timeoutMs: 100 })
  })
  it.each([
    ["a sandbox of its own", "sandbox: { ref: '@acme/x' }", /sandbox/],
    ["secrets under other names", "secrets: { API_KEY: { vault: other } }", /secrets/],
  ])("does not take %s from a CODE.md", (_what, more, message) => {
    put("s/CODE.md", `name: s\nsource: { local: . }\n${more}`)
    put("d/DRIVER.md", driverFront("code: s\nrun: x.ts"))
    const result = find(load("compat"), "d/DRIVER.md")
    expect(result?.ok === true && (result.manifest as DriverContract).unusable).toMatch(message)
  })
})

describe("a CODE.md", () => {
  const lean =
    'schema: code/v2\nid: "@acme/code/notes"\nversion: 2.1.0\ndescription: d\nsource: { local: ./n.py }\nrun: "python n.py"'
  it("serves the tools that name it, in their version", () => {
    put("t/TOOL.md", toolFront("default_implementation: notes"))
    put("u/TOOL.md", toolFront("", "t.two"))
    put(".code/notes/CODE.md", lean)
    const result = find(load(), ".code/notes/CODE.md")
    expect(result?.ok === true && result.manifest).toMatchObject({
      kind: "driver",
      id: "notes",
      version: "2.1.0",
      implements: [{ tool: "t.one", versionRange: "^1.0.0" }],
      bundle: { run: "n.py" },
    })
  })
  it("serves the tools that its driver block names", () => {
    put("t/TOOL.md", toolFront())
    put("c/CODE.md", `${lean}\ndriver: { inline: { region: [eu], implements: [{ tool: t.one, version: ^1.0.0 }] } }`)
    const result = find(load(), "c/CODE.md")
    expect(result?.ok === true && result.manifest).toMatchObject({ region: ["eu"], implements: [{ tool: "t.one" }] })
  })
  it("that nobody names is there for others, and is no driver", () => {
    put("c/CODE.md", lean)
    expect(load()).toEqual([])
  })
  it("that a tool names and that cannot be composed is refused by name", () => {
    put("t/TOOL.md", toolFront("default_implementation: notes"))
    put("c/CODE.md", lean.replace('"python n.py"', '"make run"'))
    const result = find(load(), "c/CODE.md")
    expect(result === undefined ? [] : errors(result)).toEqual(["driver-code @ run"])
  })
})
