import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join, relative } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { buildCatalogue } from "../../../src/manifest/read/catalogue.ts"
import { discoverManifests } from "../../../src/manifest/read/discover.ts"
import { limits } from "../../../src/manifest/limits.ts"
import type { DriverContract, LoadResult } from "../../../src/manifest/types.ts"
import { cliFront, errors, toolFront } from "../from-text.ts"

let root = ""
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "caisson-discover-"))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

function put(path: string, front: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true })
  writeFileSync(join(root, path), `---\n${front.trim()}\n---\n`)
}
const found = (mode: "strict" | "compat" = "compat"): readonly LoadResult[] => discoverManifests([root], { mode })
const files = (results: readonly LoadResult[]): string[] =>
  results.map((r) => relative(root, r.ok ? r.manifest.source.file : r.file))
const driverOf = (results: readonly LoadResult[]): DriverContract => {
  for (const r of results) if (r.ok && r.manifest.kind === "driver") return r.manifest
  throw new Error(`no driver: ${JSON.stringify(results.flatMap((r) => r.diagnostics))}`)
}
const cli = (commands: string, extra = ""): string => `
name: Prog
id: prog
description: d
version: 1.0.0
bin: prog
install: [{ method: apt, package: prog }]
version_check: { cmd: prog -V, parse: '(\\d+)', range: ">=1" }
sandbox: { network: { egress: [a.test] }, fs: { read: ["**"], write: ["out/**"] }, exec: { allow: false }, env: { pass: [] } }
commands: ${commands}
${extra}`

describe("the walk", () => {
  it("finds manifests at any depth, by exact name, in a stable order", () => {
    put("b/TOOL.md", toolFront("", "t.b"))
    put("a/deep/er/TOOL.md", toolFront("", "t.a"))
    put("a/tool.md", toolFront("", "t.lower"))
    put("a/x.tools.md", toolFront("", "t.other"))
    put("a/README.md", "x: 1")
    expect(files(found())).toEqual(["a/deep/er/TOOL.md", "b/TOOL.md"])
  })
  it("finds the drivers of one kind by the file names of their kinds, and refuses another's there", () => {
    const http =
      "name: H\nid: hh\ndescription: d\nversion: 1.0.0\nkind: http\nbase_url: https://a.test\nnetwork: { egress: [a.test] }\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { http: { endpoint: /x } } }]"
    put("a/HTTP.md", http)
    put("b/MCP.md", http)
    const [kept, refused] = found()
    expect(kept).toMatchObject({ ok: true, manifest: { kind: "driver", body: { kind: "http" } } })
    expect(refused?.diagnostics).toMatchObject([
      { rule: "file-kind", path: "kind", fix: expect.stringContaining("mcp") as string },
    ])
  })
  it("skips node_modules and .git, and follows no symbolic link", () => {
    const outside = mkdtempSync(join(tmpdir(), "caisson-outside-"))
    try {
      writeFileSync(join(outside, "TOOL.md"), `---\n${toolFront()}\n---\n`)
      put("node_modules/x/TOOL.md", toolFront())
      put(".git/TOOL.md", toolFront())
      put("ok/TOOL.md", toolFront())
      symlinkSync(outside, join(root, "link"))
      symlinkSync(join(outside, "TOOL.md"), join(root, "ok", "CLI.md"))
      symlinkSync(root, join(root, "loop"))
      const results = found()
      expect(files(results.filter((result) => result.ok))).toEqual(["ok/TOOL.md"])
      expect(files(results.filter((result) => !result.ok))).toEqual(["ok/CLI.md"])
      expect(results.find((result) => !result.ok)?.diagnostics[0]?.message).toContain("symbolic link")
    } finally {
      rmSync(outside, { recursive: true, force: true })
    }
  })
  it("refuses a manifest that is a symbolic link even when it is named itself", () => {
    put("real/TOOL.md", toolFront())
    symlinkSync(join(root, "real", "TOOL.md"), join(root, "TOOL.md"))
    const [result] = discoverManifests([join(root, "TOOL.md")], { mode: "compat" })
    expect(result?.diagnostics[0]?.message).toContain("symbolic link")
  })
  it("goes on past a manifest that is bad", () => {
    put("a/TOOL.md", "name: only")
    put("b/TOOL.md", toolFront())
    writeFileSync(join(root, "DRIVER.md"), "---js\nprocess.exit(1)\n---\n")
    const results = found()
    expect(results.map((r) => r.ok)).toEqual([false, false, true])
  })
  it("reports a folder that is not there, and a file that is no manifest", () => {
    expect(discoverManifests([join(root, "none")], { mode: "compat" }).flatMap((r) => errors(r))).toEqual([
      "unreadable @ ",
    ])
    writeFileSync(join(root, "x.md"), "x")
    expect(discoverManifests([join(root, "x.md")], { mode: "compat" }).flatMap((r) => errors(r))).toEqual([
      "unknown-file @ ",
    ])
  })
  it("stops at its depth with a word about it", () => {
    put(`${"d/".repeat(limits.walkDepth)}TOOL.md`, toolFront("", "t.in"))
    put(`${"d/".repeat(limits.walkDepth + 1)}TOOL.md`, toolFront("", "t.out"))
    const results = found()
    expect(results.filter((r) => r.ok)).toHaveLength(1)
    expect(results.flatMap((r) => errors(r))).toEqual(["walk-too-deep @ "])
  })
  it("reads no more of a file than its limit", () => {
    mkdirSync(join(root, "a"))
    writeFileSync(join(root, "a", "TOOL.md"), Buffer.alloc(limits.fileBytes * 3, "x"))
    expect(found().flatMap((r) => errors(r))).toEqual(["file-too-large @ "])
  })
})

describe("paths between manifests", () => {
  it("lead to the id in the file, not to a name made from the path (C-35)", () => {
    put("tools/image-create/TOOL.md", toolFront("", "image.create"))
    put("d/DRIVER.md", cliFront({ implements: "[{ tool: ../tools/image-create/TOOL.md, version: ^1.0.0 }]" }))
    expect(driverOf(found()).implements[0]).toMatchObject({
      tool: "image.create",
      toolRef: "../tools/image-create/TOOL.md",
    })
  })
  it("may name the tool's folder", () => {
    put("tools/x/TOOL.md", toolFront("", "t.x"))
    put("DRIVER.md", cliFront({ implements: "[{ tool: ./tools/x, version: ^1.0.0 }]" }))
    expect(driverOf(found()).implements[0]?.tool).toBe("t.x")
  })
  it.each([
    ["nothing", "./none/TOOL.md", "tool-ref-unresolvable @ implements[0].tool"],
    ["a file outside what was read", "../../../../../../etc/TOOL.md", "tool-ref-unresolvable @ implements[0].tool"],
    ["an absolute path", "/etc/TOOL.md", "path-escape @ implements[0].tool"],
  ])("that lead to %s refuse the driver", (_name, ref, rule) => {
    put("DRIVER.md", cliFront({ implements: `[{ tool: ${ref}, version: ^1.0.0 }]` }))
    expect(found().flatMap((r) => errors(r))).toEqual([rule])
  })
  it("that lead to a refused tool refuse the driver and nothing else", () => {
    put("t/TOOL.md", toolFront("entry: x"))
    put("u/TOOL.md", toolFront("", "t.fine"))
    put("DRIVER.md", cliFront({ implements: "[{ tool: ./t/TOOL.md, version: ^1.0.0 }]" }))
    const results = found()
    expect(results.map((r) => r.ok)).toEqual([false, false, true])
    expect(results[0]?.diagnostics[0]?.message).toContain("refused")
  })
})

it("two drivers with the same text whose paths lead to different tools are not copies of each other", () => {
  for (const [folder, id] of [
    ["a", "t.a"],
    ["b", "t.b"],
  ] as const) {
    put(`${folder}/tool/TOOL.md`, toolFront("", id))
    put(`${folder}/DRIVER.md`, cliFront({ implements: "[{ tool: ./tool/TOOL.md, version: ^1.0.0 }]" }))
  }
  const catalogue = buildCatalogue(found())
  expect(catalogue.drivers).toEqual([])
  expect(catalogue.diagnostics.map((d) => d.rule)).toEqual(["duplicate-id", "duplicate-id"])
})

describe("the tool that a driver names", () => {
  const named = (ref: string): string | undefined => {
    put(
      "drivers/deep/DRIVER.md",
      cliFront({ implements: `[{ tool: ${ref}, version: ^1.0.0, metadata: { cli: { argv: [] } } }]` }),
    )
    const [entry] = driverOf(found("strict")).implements
    return entry === undefined ? undefined : `${entry.tool}${entry.major === undefined ? "" : ` major ${entry.major}`}`
  }

  it.each([
    ["beside the driver", "drivers/deep/tools/x/TOOL.md", "./tools/x/TOOL.md"],
    ["beside the driver, by folder", "drivers/deep/xy/TOOL.md", "xy"],
    ["from the root of the manifests", "tools/x/TOOL.md", "./tools/x/TOOL.md"],
    ["from the root, without a dot", "tools/x/TOOL.md", "tools/x"],
    ["below the root's .tools", ".tools/xy/TOOL.md", "xy"],
    ["below the root's .tools, by file", ".tools/x/TOOL.md", "x/TOOL.md"],
  ])("is found %s", (_, file, ref) => {
    put(file, toolFront("", "t.found"))
    expect(named(ref)).toBe("t.found")
  })

  it("is that beside the driver before that of the root", () => {
    put("tools/x/TOOL.md", toolFront("", "t.root"))
    put("drivers/deep/tools/x/TOOL.md", toolFront("", "t.beside"))
    expect(named("tools/x/TOOL.md")).toBe("t.beside")
  })

  it("is an id, or an id with its major, where no file is meant", () => {
    expect(named("t.one")).toBe("t.one")
    expect(named('"t.one@2"')).toBe("t.one major 2")
  })
})

describe("CLI.md", () => {
  it("makes an entry of every leaf of `commands`, its path as the argv (C-1, C-4)", () => {
    put("tools/a/TOOL.md", toolFront("", "t.a"))
    put("tools/b/TOOL.md", toolFront("", "t.b").replace("version: 1.0.0", "version: 2.3.0"))
    put("CLI.md", cli("{ list: ./tools/a/TOOL.md, remote: { add: ./tools/b/TOOL.md } }"))
    const made = driverOf(found("strict"))
    expect(made).toMatchObject({ id: "prog", body: { kind: "cli" }, egressFrom: "sandbox.network" })
    expect(made.implements.map((e) => [e.tool, e.versionRange, e.cli?.argv])).toEqual([
      ["t.a", "^1.0.0", ["list"]],
      ["t.b", "^2.3.0", ["remote", "add"]],
    ])
  })
  it("lifts the older form out of a subcommand's TOOL.md in compat mode (C-4, C-5)", () => {
    put(
      "tools/a/TOOL.md",
      toolFront(
        'runner: { cli: prog, argv: [do, "${input.q}"] }\nsandbox: { fs: { write: [] }, network: { egress: [] } }\noutput: { format: text }',
        "t.a",
      ),
    )
    put("CLI.md", cli("{ list: ./tools/a/TOOL.md }"))
    const entry = driverOf(found()).implements[0]
    expect(entry?.cli?.argv).toEqual(["do", "${input.q}"])
    expect(entry?.cli).toMatchObject({ outputFormat: "text", egress: [], sandbox: { fs: { read: ["**"], write: [] } } })
    expect(found("strict").every((r) => !r.ok)).toBe(true)
  })
  it("does not lift anything out of a TOOL.md that is no subcommand", () => {
    put("a/TOOL.md", toolFront("runner: { cli: prog, argv: [do] }"))
    expect(found().flatMap((r) => errors(r))).toEqual(["tool-removed-field @ runner"])
  })
  it("refuses a subcommand whose lifted sandbox widens the bundle's", () => {
    put("tools/a/TOOL.md", toolFront('sandbox: { fs: { write: ["**"] } }', "t.a"))
    put("CLI.md", cli("{ list: ./tools/a/TOOL.md }"))
    expect(found().flatMap((r) => errors(r))).toEqual(["sandbox-widened @ commands.list.sandbox.fs.write"])
  })
  it("refuses shell syntax in a lifted argv", () => {
    put("tools/a/TOOL.md", toolFront('runner: { cli: prog, argv: [a, "&&", b] }', "t.a"))
    put("CLI.md", cli("{ list: ./tools/a/TOOL.md }"))
    expect(found().flatMap((r) => errors(r))).toEqual(["argv-shell @ commands.list.argv[1]"])
  })
  it("takes an explicit `implements` before the command of the same tool", () => {
    put("tools/a/TOOL.md", toolFront("", "t.a"))
    put(
      "CLI.md",
      cli(
        "{ list: ./tools/a/TOOL.md }",
        "implements: [{ tool: t.a, version: ^1.0.0, metadata: { cli: { argv: [explicit] } } }]",
      ),
    )
    expect(driverOf(found()).implements.map((e) => e.cli?.argv)).toEqual([["explicit"]])
  })
  it("intersects the network of both layers (C-2)", () => {
    put("tools/a/TOOL.md", toolFront("", "t.a"))
    put("CLI.md", cli("{ list: ./tools/a/TOOL.md }", "network: { egress: [b.test] }"))
    expect(driverOf(found())).toMatchObject({ egressFrom: "both", egress: [] })
  })
  it("needs at least one install method and one command", () => {
    put("CLI.md", cli("{}").replace("[{ method: apt, package: prog }]", "[]"))
    expect(found().flatMap((r) => errors(r))).toContain("out-of-range @ commands")
    put("CLI.md", cli("{ a: t.a }").replace("[{ method: apt, package: prog }]", "[]"))
    expect(found().flatMap((r) => errors(r))).toEqual(["missing-field @ install"])
  })
})
