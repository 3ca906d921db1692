import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { actionReach, driverReach, type Part, type Reach, toolReach } from "../../../src/host/registry/reach.ts"
import { hostOutside, widenings } from "../../../src/host/registry/widening.ts"
import { coversName, parseEgressEntry } from "../../../src/manifest/values/egress-entry.ts"
import { asAction, asDriver, asTool, cliFront, load, toolFront } from "../../manifest/from-text.ts"

const reach = (part: Part): Reach => ({ version: "1.0.0", digest: "d", parts: { it: part } })
const exampleOf = (before: Part, now: Part): string | undefined => widenings(reach(before), reach(now))[0]?.example

describe("a part is wider", () => {
  it.each<[string, Part, Part, string | undefined]>([
    ["with a new name", { as: "names", of: ["a"] }, { as: "names", of: ["a", "b"] }, "b"],
    ["not with a name less", { as: "names", of: ["a", "b"] }, { as: "names", of: ["b"] }, undefined],
    ["with a bound less", { as: "bounds", of: ["a", "b"] }, { as: "bounds", of: ["b"] }, "a"],
    ["not with a bound more", { as: "bounds", of: ["a"] }, { as: "bounds", of: ["a", "b"] }, undefined],
    ["with a new host", { as: "hosts", of: ["a.test"] }, { as: "hosts", of: ["a.test", "b.test"] }, "b.test:443"],
    ["with a new port", { as: "hosts", of: ["a.test"] }, { as: "hosts", of: ["a.test:8080"] }, "a.test:8080"],
    ["with names below a host", { as: "hosts", of: ["a.test"] }, { as: "hosts", of: ["*.a.test"] }, "x.a.test:443"],
    [
      "with any protocol",
      { as: "hosts", of: ["a.test:443"] },
      { as: "hosts", of: ["tcp://a.test:443"] },
      "tcp://a.test:443",
    ],
    ["not with one name of many", { as: "hosts", of: ["*.a.test"] }, { as: "hosts", of: ["b.a.test:443"] }, undefined],
    [
      "not with a protocol instead of any",
      { as: "hosts", of: ["tcp://a.test:443"] },
      { as: "hosts", of: ["a.test:443"] },
      undefined,
    ],
    ["with any host", { as: "hosts", of: [] }, { as: "hosts", of: "any" }, "x.test:443"],
    ["not with a host instead of any", { as: "hosts", of: "any" }, { as: "hosts", of: ["a.test"] }, undefined],
    ["with more depth", { as: "paths", of: ["notes/*"] }, { as: "paths", of: ["notes/**"] }, "notes/x/y/z"],
    ["with another folder", { as: "paths", of: ["notes/**"] }, { as: "paths", of: ["notes/**", "keys/a"] }, "keys/a"],
    ["with the home", { as: "paths", of: ["**"] }, { as: "paths", of: ["~/.ssh/**"] }, "~/.ssh/x/y/z"],
    ["not with a part of it", { as: "paths", of: ["notes/**"] }, { as: "paths", of: ["notes/a/*.md"] }, undefined],
    [
      "with another effect",
      { as: "effects", of: ["workspace:/notes/"] },
      { as: "effects", of: ["workspace:/notes/", "network:*"] },
      "network:x",
    ],
    [
      "with an effect's wider scope",
      { as: "effects", of: ["workspace:/notes/*"] },
      { as: "effects", of: ["workspace:/"] },
      "workspace:/x/y/z",
    ],
    [
      "not with an effect's part",
      { as: "effects", of: ["database:*"] },
      { as: "effects", of: ["database:users"] },
      undefined,
    ],
    ["with a higher limit", { as: "most", of: 10 }, { as: "most", of: 11 }, "11"],
    ["without its limit", { as: "most", of: 10 }, { as: "most" }, "11"],
    ["not with a limit where there was none", { as: "most" }, { as: "most", of: 11 }, undefined],
    ["with a lower floor", { as: "least", of: 2, text: "2" }, { as: "least", of: 1, text: "1" }, "1"],
    ["not with a higher floor", { as: "least", of: 1, text: "1" }, { as: "least", of: 2, text: "2" }, undefined],
    [
      "with a class instead of a policy",
      { as: "bounds", of: ["policy:a"] },
      { as: "least", of: 1, text: "on-mutate" },
      "on-mutate",
    ],
    [
      "not with always instead of a policy",
      { as: "bounds", of: ["policy:a"] },
      { as: "least", of: 2, text: "always" },
      undefined,
    ],
    [
      "with a policy instead of always",
      { as: "least", of: 2, text: "always" },
      { as: "bounds", of: ["policy:a"] },
      "policy:a",
    ],
    ["as soon as it changes, where it may not", { as: "same", of: "a" }, { as: "same", of: "b" }, "b"],
  ])("%s", (_, before, now, example) => {
    expect(exampleOf(before, now)).toBe(example)
  })
  it("not where it was not there before", () => {
    expect(widenings({ version: "1.0.0", digest: "d", parts: {} }, reach({ as: "names", of: ["a"] }))).toEqual([])
  })
})

describe("what is told of hosts", () => {
  const entry = fc.constantFrom(
    "a.test",
    "*.a.test",
    "b.a.test",
    "*.b.a.test",
    "a.test:8080",
    "tcp://a.test:443",
    "c.test:80",
  )
  const list = fc.uniqueArray(entry, { maxLength: 4 })
  const reaches = (entries: readonly string[], name: string, port: number, tcp: boolean): boolean =>
    entries.some((text) => {
      const parsed = parseEgressEntry(text)
      if (!parsed.ok) return false
      const { entry: rule } = parsed
      return coversName(rule, name) && rule.ports.includes(port) && (!tcp || rule.protocol === "tcp")
    })
  it("is a host that passes now and did not before, and nothing is told only where there is none", () => {
    fc.assert(
      fc.property(list, list, (before, now) => {
        const example = hostOutside(before, now)
        if (example !== undefined) {
          const [, tcp, name = "", port] = /^(tcp:\/\/)?(.*):(\d+)$/.exec(example) ?? []
          expect(reaches(now, name, Number(port), tcp !== undefined)).toBe(true)
          expect(reaches(before, name, Number(port), tcp !== undefined)).toBe(false)
          return
        }
        for (const name of ["a.test", "x.a.test", "b.a.test", "x.b.a.test", "c.test", "x.test"])
          for (const port of [80, 443, 8080])
            for (const tcp of [true, false])
              if (reaches(now, name, port, tcp)) expect(reaches(before, name, port, tcp)).toBe(true)
      }),
    )
  })
})

const tool = (extra = ""): Reach => toolReach(asTool(load("TOOL.md", toolFront(extra))))
const driver = (extra = ""): Reach => driverReach(asDriver(load("DRIVER.md", cliFront({ extra }))))
const server = (extra = ""): Reach =>
  driverReach(
    asDriver(
      load(
        "DRIVER.md",
        `name: x\nid: far\ndescription: d\nversion: 1.0.0\nkind: mcp\nserver: { kind: npm, package: a-server }\ntransport: stdio\n${extra}\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { tool_name: do } } }]`,
      ),
    ),
  )
const action = (extra = ""): Reach =>
  actionReach(asAction(load("ACTION.md", `schema: action/v1\nid: a:b\ndescription: d\n${extra}`)))
const pathsOf = (before: Reach, now: Reach): readonly string[] => widenings(before, now).map((each) => each.path)

describe("a manifest reaches further", () => {
  const effects = 'mutates: ["workspace:/notes/*"]\napproval: always\nrisk_level: 2'
  it.each<[string, string, string, readonly string[]]>([
    ["with an effect more", effects, effects.replace("/notes/*", "/"), ["mutates"]],
    ["with less risk", effects, effects.replace("2", "1"), ["risk_level"]],
    ["with less approval", effects, effects.replace("always", "on-mutate"), ["approval"]],
    ["with the network instead of none", "requires: { network: [] }", "", ["requires.network"]],
    ["with a secret more", "", "requires: { secrets: [a-key] }", ["requires.secrets"]],
    ["with a tool more", "", "requires: { tools: [t.two] }", ["requires.tools"]],
    ["with a kind of drivers more", "driver_constraints: { forbid: [http] }", "", ["driver_constraints.forbid"]],
    [
      "with any kind of drivers",
      "driver_constraints: { require_kind: [cli] }",
      "",
      ["driver_constraints.require_kind"],
    ],
    ["with more time", "timeout_ms: 10", "timeout_ms: 20", ["timeout_ms"]],
    ["with more attempts", "", "retry: { max_attempts: 3, backoff: fixed }", ["retry.max_attempts"]],
    ["as one that may be repeated", "", "idempotent: true", ["idempotent"]],
    ["not with other words", "tags: [a]", "tags: [b]", []],
    [
      "not with less",
      `${effects}\nrequires: { secrets: [a-key] }`,
      effects.replace("/notes/*", "/notes/a").replace("2", "3"),
      [],
    ],
  ])("of a tool %s", (_, before, now, paths) => {
    expect(pathsOf(tool(before), tool(now))).toEqual(paths)
  })
  it.each<[string, string, string, readonly string[]]>([
    ["with a host more", "", "network: { egress: [a.test] }", ["network.egress", "implements[t.one].network.egress"]],
    ["with a region more", "region: [eu]", "region: [eu, us]", ["region"]],
    ["with a variable of its login more", "", "auth: { state: { env: [A_KEY] } }", ["auth.state.env"]],
    ["without a limit", "metadata: { limits: { pids: 4 } }", "", ["metadata.limits.pids"]],
    [
      "with a larger budget",
      "metadata: { egress_budget: { requests: 1 } }",
      "metadata: { egress_budget: { requests: 2 } }",
      ["metadata.egress_budget.requests"],
    ],
    ["not with a tag of another sort", "tags: [a]", "tags: [b]", []],
  ])("of a driver %s", (_, before, now, paths) => {
    expect(pathsOf(driver(before), driver(now))).toEqual(paths)
  })
  const sealed = "sandbox: { fs: { read: [a/**], write: [] }, exec: { allow: false }, env: { pass: [] } }"
  it.each<[string, string, string, readonly string[]]>([
    [
      "that starts programs",
      "",
      "sandbox: { fs: { read: [a/**], write: [] }, exec: { allow: true, spawn: [git] }, env: { pass: [] } }",
      ["sandbox.exec.allow", "sandbox.exec.spawn"],
    ],
    ["that reads more", sealed, sealed.replace("a/**", "b/**, a/**"), ["sandbox.fs.read"]],
    ["that gets a variable more", sealed, sealed.replace("pass: []", "pass: [LANG]"), ["sandbox.env.pass"]],
    ["without a sandbox of its own", sealed, "", ["sandbox.fs.read", "sandbox.fs.write"]],
    ["not with less", "", sealed, []],
  ])("of a server %s", (_, before, now, paths) => {
    expect(pathsOf(server(before), server(now))).toEqual(paths.map((path) => `implements[t.one].${path}`))
  })
  const started = (more: string): Reach =>
    driverReach(
      asDriver(
        load(
          "DRIVER.md",
          `name: x\nid: far\ndescription: d\nversion: 1.0.0\nkind: mcp\nserver: { kind: npm, package: a-server, ${more} }\ntransport: stdio\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { tool_name: do } } }]`,
        ),
      ),
    )
  it.each<[string, string, string, readonly string[]]>([
    ["with a flag more", "args: [--read]", "args: [--read, --write]", ["server.args"]],
    ["with a flag less", "args: [--read-only]", "args: []", ["server.args"]],
    ["with another variable", 'env: { MODE: "read" }', 'env: { MODE: "write" }', ["server.env"]],
    ["not with the same", "args: [-a], env: { A: b }", "args: [-a], env: { A: b }", []],
  ])("of a server that is started %s", (_, before, now, paths) => {
    expect(pathsOf(started(before), started(now))).toEqual(paths)
  })
  it.each<[string, string, string, readonly string[]]>([
    ["with a program more", "native: [git]", "native: [git, ssh]", ["runner.needs.native"]],
    ["not with a program less", "native: [git, ssh]", "native: [git]", []],
  ])("of a module %s", (_, before, now, paths) => {
    const module = (native: string): Reach =>
      driverReach(
        asDriver(
          load(
            "DRIVER.md",
            `name: x\nid: mod\ndescription: d\nversion: 1.0.0\nkind: sdk\npackage: m\npackage_manager: local\nrunner: { inline: { needs: { language: node, ${native} } } }\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { sdk: { function_ref: run } } }]`,
          ),
        ),
      )
    expect(pathsOf(module(before), module(now))).toEqual(paths)
  })
  it.each<[string, string, string, readonly string[]]>([
    ["with an effect more, which its tools could not know of", "", 'mutates: ["storage:*"]', ["mutates"]],
    ["with an effect less", 'mutates: ["storage:*"]', "", ["mutates"]],
    ["with another risk", "risk_level: 1", "risk_level: 2", ["risk_level"]],
    ["with less approval", "approval: always", "approval: on-mutate", ["approval"]],
    ["with a need less", "requires: { secrets: [a-key] }", "", ["requires.secrets"]],
    ["with an event less", "fires_events: [a]", "", ["fires_events"]],
    ["not with more approval", "approval: on-mutate", "approval: always", []],
  ])("of an action %s", (_, before, now, paths) => {
    expect(pathsOf(action(before), action(now))).toEqual(paths)
  })
  it("no further than itself", () => {
    for (const each of [tool(effects), driver("network: { egress: [a.test] }"), action("approval: policy:x")])
      expect(widenings(each, JSON.parse(JSON.stringify(each)) as Reach)).toEqual([])
  })
})
