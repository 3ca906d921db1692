import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import fc from "fast-check"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { buildCatalogue, type Catalogue } from "../../../src/manifest/read/catalogue.ts"
import { discoverManifests } from "../../../src/manifest/read/discover.ts"
import { approvalRank } from "../../../src/manifest/values/approval.ts"
import type { ToolContract } from "../../../src/manifest/types.ts"
import { load, toolFront } from "../from-text.ts"

const action = (extra = ""): string => `schema: action/v1\nid: shelf:archive\ndescription: d\n${extra}`
const whole =
  'mutates: ["storage:*"]\nrequires: { network: [api.shelf.test], secrets: [shelf-key], tools: [t.other] }\napproval: always\nrisk_level: 2\ncategory: filing\nfires_events: [shelved]'
const catalogueOf = (actionText: string, toolText: string, mode: "strict" | "compat" = "compat"): Catalogue =>
  buildCatalogue([load("/m/ACTION.md", action(actionText)), load("/m/TOOL.md", toolText, mode)])
const rules = ({ diagnostics }: Catalogue): readonly string[] =>
  diagnostics.filter((each) => each.severity === "error").map((each) => each.rule)
const only = ({ tools }: Catalogue): ToolContract | undefined => tools[0]

describe("a tool has from its action", () => {
  it("all that it leaves unsaid", () => {
    const tool = only(catalogueOf(whole, toolFront("implements: shelf:archive")))
    expect(tool).toMatchObject({
      mutates: [{ text: "storage:*" }],
      requires: { network: ["api.shelf.test"], secrets: ["shelf-key"], tools: ["t.other"] },
      approval: { class: "always" },
      riskLevel: 2,
      action: {
        id: "shelf:archive",
        category: "filing",
        targetKind: "shelf",
        verb: "archive",
        firesEvents: ["shelved"],
      },
    })
    expect(tool?.unsaid).toBeUndefined()
    expect(Object.isFrozen(tool)).toBe(true)
  })
  it("each part for itself, beside those that it says", () => {
    const said = "implements: shelf:archive\nrequires: { network: [api.shelf.test, more.test] }\nrisk_level: 3"
    expect(only(catalogueOf(whole, toolFront(said)))).toMatchObject({
      mutates: [{ text: "storage:*" }],
      requires: { network: ["api.shelf.test", "more.test"], secrets: ["shelf-key"] },
      riskLevel: 3,
      approval: { class: "always" },
    })
  })
  it("effects only together with the question about them (C-8)", () => {
    const quiet = 'mutates: ["storage:*"]\napproval: auto'
    const tool = toolFront("implements: shelf:archive")
    expect(only(catalogueOf(quiet, tool))?.approval.class).toBe("on-mutate")
    const auto = toolFront("implements: shelf:archive\napproval: auto")
    expect(only(catalogueOf(quiet, auto))?.approval.class).toBe("on-mutate")
    expect(rules(catalogueOf(quiet, auto, "strict"))).toEqual(["approval-auto-with-mutates"])
  })
  it("nothing where it says so: an empty list is something said", () => {
    const catalogue = catalogueOf(whole, toolFront("implements: shelf:archive\nmutates: []"))
    expect(rules(catalogue)).toEqual(["action-mutates"])
    expect(catalogue.diagnostics[0]?.message).toContain("a call that changes `storage:x` would go by")
  })
  it("a tool without an action is as it is written", () => {
    expect(only(buildCatalogue([load("/m/TOOL.md", toolFront("risk_level: 1"))]))).toMatchObject({
      riskLevel: 1,
      mutates: [],
    })
  })
})

describe("a tool's fault against its action is told with what would pass by it:", () => {
  it.each([
    ["mutates: ['network:*']\napproval: always", "action-mutates", "`storage:x`"],
    ["risk_level: 1", "action-risk", "a policy that stops risk 2 would let it pass"],
    ["approval: on-mutate", "action-approval", "a call that `always` holds back, `on-mutate` lets pass"],
    ["requires: { secrets: [] }", "action-requires", "`shelf-key`"],
  ])("%s", (said, rule, example) => {
    const catalogue = catalogueOf(whole, toolFront(`implements: shelf:archive\n${said}`))
    expect(catalogue.tools).toEqual([])
    expect(rules(catalogue)).toEqual([rule])
    expect(catalogue.diagnostics.find((each) => each.rule === rule)?.message).toContain(example)
  })
})

it("whatever an action and a tool say, the tool that comes out is at least as strict", () => {
  const approval = fc.constantFrom("auto", "on-mutate", "always")
  const mutates = fc.subarray(["storage:*", "network:*", "workspace:/notes/"])
  const part = fc.record({
    approval,
    mutates,
    risk: fc.integer({ min: 0, max: 3 }),
    secrets: fc.subarray(["a-key", "b-key"]),
  })
  const lines = (of: Partial<{ approval: string; mutates: string[]; risk: number; secrets: string[] }>): string =>
    [
      ...(of.approval === undefined ? [] : [`approval: ${of.approval}`]),
      ...(of.mutates === undefined ? [] : [`mutates: ${JSON.stringify(of.mutates)}`]),
      ...(of.risk === undefined ? [] : [`risk_level: ${of.risk}`]),
      ...(of.secrets === undefined ? [] : [`requires: { secrets: ${JSON.stringify(of.secrets)} }`]),
    ].join("\n")
  const said = fc.record(
    { approval, mutates, risk: fc.integer({ min: 0, max: 3 }), secrets: fc.subarray(["a-key", "b-key"]) },
    { requiredKeys: [] },
  )
  fc.assert(
    fc.property(part, said, (floor, own) => {
      const tool = only(catalogueOf(lines(floor), toolFront(`implements: shelf:archive\n${lines(own)}`)))
      if (tool === undefined) return
      const texts = tool.mutates.map((each) => each.text)
      expect(floor.mutates.every((each) => texts.includes(each))).toBe(true)
      expect(floor.secrets.every((each) => tool.requires.secrets.includes(each))).toBe(true)
      expect(tool.riskLevel).toBeGreaterThanOrEqual(floor.risk)
      expect(approvalRank(tool.approval)).toBeGreaterThanOrEqual(approvalRank({ class: floor.approval as "auto" }))
      if (tool.mutates.length > 0) expect(tool.approval.class).not.toBe("auto")
    }),
    { numRuns: 150 },
  )
})

describe("an action is named", () => {
  let root: string
  beforeEach(() => {
    root = mkdtempSync(join(tmpdir(), "caisson-actions-"))
  })
  afterEach(() => rmSync(root, { recursive: true, force: true }))
  const write = (path: string, front: string): void => {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), `---\n${front}\n---\n`)
  }
  const found = (ref: string): Catalogue => {
    write("tools/one/TOOL.md", toolFront(`implements: ${ref}`))
    return buildCatalogue(discoverManifests([root], { mode: "compat" }))
  }

  const library = "@acme/actions/.actions/shelf-archive"
  const next = "next/@acme/actions/shelf-archive"
  it.each<[string, string, number, readonly string[]]>([
    ["by its id", "shelf:archive", 1, [library]],
    ["by its id and major", '"shelf:archive@2"', 2, [library, "two"]],
    ["by a registry's name", '"@acme/actions/shelf-archive"', 1, [library]],
    ["by a registry's name and a major", '"@acme/actions/shelf-archive@2"', 2, [library, next]],
    ["by a registry's name and a version", '"@acme/actions/shelf-archive@2.0.0"', 2, [library, next]],
    ["by { ref }", '{ ref: "@acme/actions/shelf-archive" }', 1, [library, "two"]],
    ["by a path beside the tool", `../../${library}/ACTION.md`, 1, [library, "two"]],
    ["by a folder's path beside the tool", `../../${library}`, 1, [library, "two"]],
    ["by a path from the root", "./two/ACTION.md", 2, [library, "two"]],
    ["by a folder's path from the root", "./two", 2, [library, "two"]],
    ["by a folder's path below .actions", "./two", 2, [library, ".actions/two"]],
    ["by { file }", "{ file: ./two/ACTION.md }", 2, [library, "two"]],
    ["by { file } of a folder", "{ file: ./two }", 2, [library, "two"]],
  ])("%s", (_, ref, major, folders) => {
    for (const [index, folder] of folders.entries()) write(`${folder}/ACTION.md`, action(`version: ${index + 1}.0.0`))
    const catalogue = found(ref)
    expect(catalogue.diagnostics).toEqual([])
    expect(only(catalogue)?.action?.version).toBe(`${major}.0.0`)
  })
  it("by a registry's name whose folder is not there, where its last part can mean one alone; with a warning", () => {
    write(".actions/shelf-archive/ACTION.md", action())
    const catalogue = found('"@acme/actions/shelf-archive"')
    expect(only(catalogue)?.action?.id).toBe("shelf:archive")
    expect(catalogue.diagnostics.map((each) => each.rule)).toEqual(["action-by-slug"])
  })
  it("on the spot, as the tool's own", () => {
    const catalogue = found(
      '{ inline: { id: shelf:archive, description: d, mutates: ["storage:scratch"], risk_level: 2 } }',
    )
    expect(only(catalogue)).toMatchObject({
      riskLevel: 2,
      mutates: [{ text: "storage:scratch" }],
      implements: "inline:shelf:archive",
    })
    expect(catalogue.actions).toEqual([])
  })
  it.each([
    ["by an id that nobody declares", "shelf:none"],
    ["by a path that leads nowhere", "./nowhere/ACTION.md"],
    ["by a path to a tool", "./tools/one/TOOL.md"],
    ["by a path out of the folders", "{ file: ../../../../etc/ACTION.md }"],
    ["by a registry's name that two may mean", '"@acme/actions/shelf-archive"'],
    ["by a registry's name that none may mean", '"@acme/actions/none"'],
  ])("%s: action_ref_unresolvable", (_, ref) => {
    write("a/ACTION.md", action())
    write("b/ACTION.md", action().replace("shelf:archive", "shelf.archive"))
    const catalogue = found(ref)
    expect(rules(catalogue)).toEqual(["action_ref_unresolvable"])
    expect(catalogue.tools).toEqual([])
  })
  it("on the spot, and is refused as an ACTION.md would be", () => {
    const catalogue = found("{ inline: { id: Shelf, description: d, entry: x } }")
    expect(catalogue.diagnostics.map((each) => each.path)).toContain("implements.inline.id")
    expect(catalogue.tools).toEqual([])
  })
})
