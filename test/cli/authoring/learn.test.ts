/** From what runs were seen to do to what is proposed: the pure half of `caisson learn`, against hostile names. */
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { amend } from "../../../src/authoring/learn/amend.ts"
import { compare } from "../../../src/authoring/learn/compare.ts"
import { globOfPath, readGlobs, writeGlobs } from "../../../src/authoring/learn/globs.ts"
import { learnedManifests } from "../../../src/authoring/learn/manifests.ts"
import type { Observation } from "../../../src/authoring/learn/observation.ts"
import { needsOf } from "../../../src/authoring/learn/propose.ts"
import type { ScaffoldAnswers } from "../../../src/authoring/scaffold/answers.ts"
import { loadManifest } from "../../../src/manifest/read/load.ts"
import { matches, parseGlob, type WorkspacePath } from "../../../src/manifest/values/globs.ts"

const receipt = (digit: string): string => `sha256:${digit.repeat(64)}`
const run = (seen: Partial<Observation>, digit = "a"): Observation => ({
  receipt: receipt(digit),
  ok: true,
  writes: [],
  started: [],
  kept: [],
  barred: [],
  reached: [],
  unreached: [],
  wallMs: 1,
  ...seen,
})
const wrote = (...paths: readonly string[]): Observation =>
  run({ writes: paths.map((path) => ({ path, made: false })) })
const globs = (...runs: readonly Observation[]): readonly string[] => writeGlobs(runs).globs.map(({ glob }) => glob)

const asked: ScaffoldAnswers = {
  kind: "cli",
  tool: "a.b",
  driver: "ab",
  description: "Does it.",
  command: ["cp", "a", "b"],
  inputs: [],
  write: [],
  hosts: [],
  spawn: [],
  output: "text",
}
const texts = (...runs: readonly Observation[]): { readonly tool: string; readonly driver: string } => {
  const [tool, driver] = learnedManifests(asked, needsOf(runs), [])
  return { tool: tool?.text ?? "", driver: driver?.text ?? "" }
}

describe("a glob for a path that a program chose", () => {
  it.each([
    ["notes/a.txt", "notes/a.txt"],
    ["*", "\\x2a"],
    ["**", "\\x2a\\x2a"],
    ["a/**/b*", "a/\\x2a\\x2a/b\\x2a"],
    ["a b", "a\\x20b"],
    ["a\nb", "a\\x0ab"],
    ["~/x", "\\x7e/x"],
    ["${input.x}", "\\x24\\x7binput.x\\x7d"],
    ["{a,b}[c]?!", "\\x7ba,b\\x7d\\x5bc\\x5d\\x3f\\x21"],
    ["# no comment", "#\\x20no\\x20comment"],
    ["- a: b", "-\\x20a:\\x20b"],
  ])("%j is %s", (path, glob) => {
    expect(globOfPath(path)).toBe(glob)
  })

  it.each([
    "",
    "../x",
    "a/../../b",
    "/etc/passwd",
    "a//b",
    ".",
    "a/.",
    "a\0b",
    "a\u202eb",
    "a\u2028b",
    "a\u00a0b",
    "\ud800",
    "x".repeat(1100),
  ])("%j is none", (path) => {
    expect(globOfPath(path)).toBeUndefined()
  })

  it("matches its path and no other, whatever the path", () => {
    const piece = fc.oneof(
      fc.string({ unit: "binary", minLength: 1, maxLength: 6 }),
      fc.string({ unit: fc.constantFrom(..."ab*?[]{}!~$\\ \n\t.#:-'\"&%@`|>"), minLength: 1, maxLength: 6 }),
    )
    const path = fc.array(piece, { minLength: 1, maxLength: 4 }).map((parts) => parts.join("/"))
    fc.assert(
      fc.property(path, path, (one, other) => {
        const glob = globOfPath(one)
        if (glob === undefined) return
        const parsed = parseGlob(`/${glob}`)
        expect(parsed.ok).toBe(true)
        if (!parsed.ok) return
        expect(matches(parsed.glob, one as WorkspacePath)).toBe(true)
        for (const near of [other, `${one}x`, `${one}/x`, `x/${one}`, one.slice(0, -1)])
          if (near !== one) expect([one, near, matches(parsed.glob, near as WorkspacePath)]).toEqual([one, near, false])
      }),
      { numRuns: 2_000 },
    )
  })
})

describe("what a command wrote", () => {
  const made = (folder: string, count: number): Observation["writes"] => [
    { path: folder, made: true },
    ...Array.from({ length: count }, (_, at) => ({ path: `${folder}/${at}`, made: false })),
  ]

  it("is named path by path, and the paths of several runs are put together", () => {
    expect(globs(wrote("b", "a"), wrote("a", "c"))).toEqual(["a", "b", "c"])
    const [both] = writeGlobs([wrote("a"), run({ writes: [{ path: "a", made: false }] }, "b")]).globs
    expect(both?.receipts).toEqual([receipt("a"), receipt("b")])
  })

  it("is a whole folder only where every run that wrote there had made it itself", () => {
    expect(globs(run({ writes: made("out", 9) }))).toEqual(["out", "out/**"])
    expect(globs(run({ writes: made("out", 3) }))).toEqual(["out", "out/0", "out/1", "out/2"])
    // The second run found it there: it holds what is not the command's.
    const found = globs(run({ writes: made("out", 9) }), wrote("out/mine"))
    expect(found.filter((glob) => glob.includes("*"))).toEqual([])
    expect(found).toContain("out/mine")
    // Nor does a folder that was there become a wildcard, however much is written into it.
    const many = wrote(...Array.from({ length: 500 }, (_, at) => `src/${at}`))
    expect(globs(many).every((glob) => !glob.includes("*"))).toBe(true)
    expect(writeGlobs([many]).unspelt.length + globs(many).length).toBe(500)
  })

  it("is told where no manifest can name it", () => {
    expect(needsOf([wrote("a\u202eb")])).toMatchObject({ write: [], left: [{ what: "a\u202eb" }] })
  })
})

describe("names that a hostile program chose", () => {
  const evil = [
    "a\n    - '**'",
    "x # seen in sha256:0\nmutates: [workspace:/**]",
    "---",
    "*",
    "../../etc",
    "\u001b[2J",
    "&a",
    "!!js/function x",
    "${secrets.KEY}",
  ]
  it("widen nothing, end no line and begin no key", () => {
    const { tool, driver } = texts(
      run({
        writes: evil.map((path) => ({ path, made: false })),
        started: evil,
        reached: evil,
        kept: evil,
        unreached: evil,
      }),
    )
    for (const [text, name] of [
      [tool, "TOOL.md"],
      [driver, "DRIVER.md"],
    ] as const) {
      const front = text.split(/^---$/m)[1] ?? ""
      const loaded = loadManifest(name, Buffer.from(text), "strict")
      expect([name, loaded.ok, loaded.diagnostics]).toEqual([name, true, []])
      expect(front).not.toMatch(/[\u001b\u202e]/)
    }
    const contract = parse(tool.split(/^---$/m)[1] ?? "") as { mutates: string[]; requires: { network: string[] } }
    expect(contract.requires.network).toEqual([])
    for (const scope of contract.mutates) expect(scope).not.toMatch(/[*\s]/)
    const sandbox = (parse(driver.split(/^---$/m)[1] ?? "") as { sandbox: Record<string, Record<string, unknown>> })
      .sandbox
    expect(sandbox["exec"]).toEqual({ allow: false })
    expect(sandbox["network"]?.["egress"]).toEqual([])
  })

  it("is a host only where it is one, by its name and port", () => {
    const hosts = (...reached: readonly string[]): readonly string[] =>
      needsOf([run({ reached })]).hosts.map(({ value }) => value)
    expect(hosts("a.example.com:443", "*.example.com:443", "*", "a.example.com:443\n- '*'", "127.1:80")).toEqual([
      "a.example.com:443",
    ])
  })
})

describe("what runs printed, sent and got", () => {
  const counted = (printed: number, sent: number, got: number, reached = ["a.example.com:443"]): Observation =>
    run({ reached, printed, sent, got })
  it("bounds ten times the most of each, and never closely", () => {
    const { driver } = texts(counted(20_000, 100, 9_000), counted(30_000, 50_000, 1))
    const front = parse(driver.split(/^---$/m)[1] ?? "") as { metadata: unknown }
    expect(front.metadata).toEqual({
      limits: { output_bytes: 300_000 },
      egress_budget: { bytes_out: 500_000, bytes_in: 90_000 },
    })
    expect(driver).toMatch(/output_bytes: 300000 # ten times the most, seen in sha256:aaaa/)
    expect(needsOf([counted(1, 1, 1)])).toMatchObject({ outputBytes: 65_536, network: { bytesOut: 65_536 } })
  })
  it("is not bounded where a run was not counted, nor the network where none was reached", () => {
    expect(needsOf([counted(1, 1, 1), run({})])).not.toHaveProperty("outputBytes")
    expect(needsOf([counted(1, 0, 0, [])])).not.toHaveProperty("network")
    expect(texts(run({})).driver).not.toContain("metadata:\n  limits")
  })
})

describe("beside what is declared", () => {
  const declared = {
    mutates: ["out/**"],
    write: ["**"],
    read: ["**"],
    egress: ["api.example.com", "*.cdn.example.com:443"],
    spawn: ["git", "sh"],
  }

  it("tells what is missing apart from what was never used", () => {
    const needs = needsOf([
      run({
        writes: [{ path: "notes/a", made: false }],
        reached: ["api.example.com:443", "api.example.com:8443", "example.com:443"],
        started: ["git"],
      }),
    ])
    const { widening, narrowing } = compare(declared, needs)
    expect(widening.map(({ field, value }) => [field, value])).toEqual([
      ["mutates", "notes/a"],
      ["network.egress", "api.example.com:8443"],
      ["network.egress", "example.com:443"],
    ])
    expect(narrowing.map(({ field, value }) => [field, value])).toEqual([
      ["mutates", "out/**"],
      ["network.egress", "*.cdn.example.com:443"],
      ["exec.spawn", "sh"],
    ])
  })

  it("changes lists alone, and leaves the rest of the text as it was written", () => {
    const text =
      '---\n# mine\nmutates: [ "workspace:/a" ]   # why\nlist:\n  - one # first\n  - two\nname: x\n---\nBody: [a]\n'
    const { text: now, left } = amend(text, [
      { path: ["mutates"], add: ["workspace:/b # c"], remove: [] },
      { path: ["list"], add: [], remove: ["one"] },
      { path: ["deep", "er"], add: ["x"], remove: [] },
      { path: ["tags"], add: ["t"], remove: [] },
    ])
    expect(parse(now.split(/^---$/m)[1] ?? "")).toEqual({
      mutates: ["workspace:/a", "workspace:/b # c"],
      list: ["two"],
      name: "x",
      tags: ["t"],
    })
    expect(now).toContain("# mine\n")
    expect(now).toContain("   # why\n")
    expect(now.endsWith("---\nBody: [a]\n")).toBe(true)
    expect(left.map(({ path }) => path)).toEqual([["deep", "er"]])
  })
})

describe("what was read", () => {
  const read = (seen: Partial<Observation>): readonly string[] =>
    readGlobs([run(seen)])?.globs.map(({ glob }) => glob) ?? []

  it("is those files, whatever they are called", () => {
    expect(read({ reads: ["**", "a/**", "a/", "b"] })).toEqual(["\\x2a\\x2a", "a", "a/\\x2a\\x2a", "b"])
  })

  it("is a folder with all below it where its files were not told apart", () => {
    expect(read({ reads: [], readBelow: ["."] })).toEqual(["**"])
    expect(read({ reads: ["a"], readBelow: ["a*"] })).toEqual(["a", "a\\x2a/**"])
  })
})
