import { describe, expect, it } from "vitest"
import { buildCatalogue } from "../../../src/manifest/read/catalogue.ts"
import { cliFront, load, toolFront } from "../from-text.ts"

const action = (extra = ""): string =>
  `schema: action/v1\nid: shelf:archive\ndescription: d\nmutates: ["storage:*"]\nrequires: { secrets: [shelf-key] }\napproval: on-mutate\nrisk_level: 2\n${extra}`
const carrier = (extra: string): string => toolFront(`implements: shelf:archive\n${extra}`)
const key = load("SECRETS.md", "secrets: [{ slug: shelf-key, name: K, description: d }]")
const faithful = 'mutates: ["storage:shelf"]\nrequires: { secrets: [shelf-key] }\napproval: always\nrisk_level: 3'
const rulesOf = (...results: ReturnType<typeof load>[]): string[] =>
  buildCatalogue(results).diagnostics.map((d) => d.rule)

describe("buildCatalogue", () => {
  it("refuses all of two different manifests with one id@major, and leaves the rest standing", () => {
    const catalogue = buildCatalogue([
      load("a/TOOL.md", toolFront()),
      load("b/TOOL.md", toolFront("risk_level: 1")),
      load("c/TOOL.md", toolFront("", "t.two")),
    ])
    expect(catalogue.tools.map((t) => t.id)).toEqual(["t.two"])
    expect(catalogue.diagnostics.map((d) => [d.rule, d.file])).toEqual([
      ["duplicate-id", "a/TOOL.md"],
      ["duplicate-id", "b/TOOL.md"],
    ])
  })
  it.each([
    ["beside the driver", "/m/drivers/d/SECRETS.md", "./SECRETS.md"],
    ["from the root of the manifests", "/m/secrets/SECRETS.md", "./secrets/SECRETS.md"],
    ["below the root's .secrets", "/m/.secrets/acme/SECRETS.md", "acme/SECRETS.md"],
  ])("follows a driver's auth.ref %s", (_, file, ref) => {
    const secrets = "secrets: [{ slug: a-key, name: A, description: d }]"
    const front = cliFront({ extra: `auth: { ref: ${ref}, state: { env: [A_KEY] } }` })
    const driver = load("/m/drivers/d/DRIVER.md", front)
    expect(rulesOf(driver, load(file, secrets))).toEqual([])
    expect(rulesOf(driver, load("/m/elsewhere/SECRETS.md", secrets))).toEqual(["secret-ref-unresolvable"])
  })
  it("counts identical copies once", () => {
    const catalogue = buildCatalogue([load("a/TOOL.md", toolFront()), load("b/TOOL.md", toolFront())])
    expect([catalogue.tools.length, catalogue.diagnostics.length]).toEqual([1, 0])
  })
  it("keeps two majors of one id apart", () => {
    const catalogue = buildCatalogue([
      load("a/TOOL.md", toolFront()),
      load("b/TOOL.md", toolFront().replace("version: 1.0.0", "version: 2.0.0")),
    ])
    expect(catalogue.tools.map((t) => t.major)).toEqual([1, 2])
  })
  it("refuses a secret slug that two files declare", () => {
    const secrets = (name: string): string => `secrets: [{ slug: a-key, name: ${name}, description: d }]`
    const catalogue = buildCatalogue([load("a/SECRETS.md", secrets("A")), load("b/SECRETS.md", secrets("B"))])
    expect(catalogue.secrets).toEqual([])
    expect(catalogue.diagnostics.map((d) => d.rule)).toEqual(["duplicate-id", "duplicate-id"])
  })
  it("carries what was said about manifests that did not load", () => {
    expect(rulesOf(load("TOOL.md", toolFront("entry: x")))).toEqual(["tool-removed-field"])
  })
})

describe("references that lead nowhere", () => {
  it.each([
    ["a policy", "approval: policy:team/none", "policy-ref-unresolvable"],
    ["a default driver", "default_implementation: none-http", "driver-ref-unresolvable"],
    ["a tool", "requires: { tools: [t.none] }", "tool-ref-unresolvable"],
    ["a secret", "requires: { secrets: [none.key] }", "secret-ref-unresolvable"],
  ])("to %s are told and do not stand in the way", (_name, extra, rule) => {
    const catalogue = buildCatalogue([load("TOOL.md", toolFront(extra))])
    expect(catalogue.tools).toHaveLength(1)
    expect(catalogue.diagnostics.map((d) => [d.severity, d.rule])).toEqual([["warning", rule]])
  })
  it("to a SECRETS.md are told", () => {
    expect(rulesOf(load("d/DRIVER.md", cliFront({ extra: "auth: { ref: ./SECRETS.md }" })))).toEqual([
      "secret-ref-unresolvable",
    ])
    expect(
      rulesOf(
        load("d/DRIVER.md", cliFront({ extra: "auth: { ref: ./SECRETS.md }" })),
        load("d/SECRETS.md", "secrets: [{ slug: a-key, name: A, description: d }]"),
      ),
    ).toEqual([])
  })
})

describe("a tool that carries out an action", () => {
  it("may add and tighten", () => {
    expect(rulesOf(key, load("ACTION.md", action()), load("TOOL.md", carrier(faithful)))).toEqual([])
  })
  it.each([
    ["leaves out an effect", faithful.replace('"storage:shelf"', '"network:*"'), "action-mutates"],
    ["leaves out a requirement", faithful.replace("secrets: [shelf-key]", "secrets: []"), "action-requires"],
    ["lowers the risk", faithful.replace("risk_level: 3", "risk_level: 1"), "action-risk"],
    ["claims another category", `${faithful}\nmetadata: { action: { category: other } }`, "action-inherited"],
    ["drops an event it lists", `${faithful}\nmetadata: { fires_events: [] }`, "action-requires"],
  ])("is refused when it %s", (_name, extra, rule) => {
    const catalogue = buildCatalogue([
      load("ACTION.md", action("fires_events: [shelf.archived]")),
      load("TOOL.md", carrier(extra)),
    ])
    expect(catalogue.tools).toEqual([])
    expect(catalogue.diagnostics.map((d) => d.rule)).toEqual([rule])
  })
  it("is refused when it asks for less approval", () => {
    expect(
      rulesOf(
        load("ACTION.md", action().replace("on-mutate", "always")),
        load("TOOL.md", carrier(faithful.replace("always", "policy:x"))),
      ),
    ).toEqual(["action-approval"])
  })
  it("is held to the major of the action that it names, or to the file", () => {
    const one = load("/m/one/ACTION.md", action())
    const two = load("/m/two/ACTION.md", action("version: 2.0.0").replace("risk_level: 2", "risk_level: 3"))
    const naming = (ref: string): string => carrier(faithful).replace("implements: shelf:archive", `implements: ${ref}`)
    const found = (ref: string): string[] => rulesOf(key, one, two, load("/m/TOOL.md", naming(ref)))
    expect(found('"shelf:archive@1"')).toEqual([])
    expect(found('"shelf:archive@2"')).toEqual([])
    expect(found('"shelf:archive@3"')).toEqual(["action_ref_unresolvable"])
    expect(found("{ file: ./two/ACTION.md }")).toEqual([])
    expect(found("{ file: ./three/ACTION.md }")).toEqual(["action_ref_unresolvable"])
    const lax = naming("{ file: ./two/ACTION.md }").replace("risk_level: 3", "risk_level: 2")
    expect(rulesOf(key, one, two, load("/m/TOOL.md", lax))).toEqual(["action-risk"])
  })
  it("is refused when the action is nowhere", () => {
    expect(rulesOf(key, load("TOOL.md", carrier(faithful)))).toEqual(["action_ref_unresolvable"])
  })
  it("stays with the major it was written for", () => {
    const next = load("ACTION.md", action("version: 2.0.0"))
    expect(rulesOf(key, next, load("TOOL.md", carrier(faithful)))).toEqual(["action-major"])
    expect(rulesOf(key, next, load("TOOL.md", carrier(faithful).replace("shelf:archive", "shelf:archive@2")))).toEqual(
      [],
    )
  })
})

it("a driver's contract says in which mode it was read", () => {
  expect(load("DRIVER.md", cliFront(), "strict")).toMatchObject({
    ok: true,
    manifest: { source: { mode: "strict", leniencies: [] } },
  })
})
