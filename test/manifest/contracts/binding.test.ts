import { describe, expect, it } from "vitest"
import {
  checkBinding,
  checkEntry,
  checkExecuteKeys,
  checkRevision,
  settleMapping,
} from "../../../src/manifest/contracts/binding.ts"
import type { DriverContract, Implementation, ToolContract } from "../../../src/manifest/types.ts"
import { asDriver, asTool, cliFront, load, toolFront } from "../from-text.ts"

const tool = (extra = ""): ToolContract => asTool(load("TOOL.md", toolFront(extra)))
const driver = (entry: string, extra = ""): DriverContract =>
  asDriver(
    load(
      "DRIVER.md",
      cliFront({ implements: `[{ tool: t.one, version: ^1.0.0, metadata: { cli: { argv: [] } }, ${entry} }]`, extra }),
    ),
  )
const first = (d: DriverContract): Implementation => {
  const [entry] = d.implements
  if (entry === undefined) throw new Error("no entry")
  return entry
}
const faults = (d: DriverContract, t: ToolContract = tool()): string[] =>
  checkBinding(d, first(d), t).map((x) => `${x.severity} ${x.rule} @ ${x.path}`)

describe("a driver that reaches further than its tool", () => {
  const egress = "network: { egress: ['*.a.test'] }"
  it("is told which dial of it is stopped", () => {
    const made = driver("", egress)
    const [told] = checkBinding(made, first(made), tool("requires: { network: [] }"))
    expect(told).toMatchObject({ severity: "warning", rule: "egress-beyond-tool" })
    expect(told?.message).toContain("a dial to `x.a.test:443` is stopped")
  })
  it("is told nothing where the tool leaves the network to its drivers, or it has none", () => {
    expect(faults(driver("", egress))).toEqual([])
    expect(faults(driver(""), tool("requires: { network: [] }"))).toEqual([])
  })
})

describe("checkBinding", () => {
  it("is silent when the driver fits", () => {
    expect(
      faults(
        driver(
          "schema_narrowing: { drop_inputs: [size], drop_outputs: [b] }, mapping: { query: q }, timeout_override_ms: 1000",
        ),
      ),
    ).toEqual([])
  })
  it.each([
    [
      "dropping a required input",
      "schema_narrowing: { drop_inputs: [q] }",
      "error narrowing-required @ implements[0].schema_narrowing.drop_inputs[0]",
    ],
    [
      "dropping an input that is not there",
      "schema_narrowing: { drop_inputs: [zoom] }",
      "error narrowing-unknown @ implements[0].schema_narrowing.drop_inputs[0]",
    ],
    [
      "dropping a required output",
      "schema_narrowing: { drop_outputs: [a] }",
      "error narrowing-required @ implements[0].schema_narrowing.drop_outputs[0]",
    ],
    [
      "dropping an output that is not there",
      "schema_narrowing: { drop_outputs: [z] }",
      "error narrowing-unknown @ implements[0].schema_narrowing.drop_outputs[0]",
    ],
    ["mapping from nothing", "mapping: { x: y }", "error mapping-unknown @ implements[0].mapping.x"],
    [
      "mapping what is dropped",
      "mapping: { x: size }, schema_narrowing: { drop_inputs: [size] }",
      "error mapping-dropped @ implements[0].mapping.x",
    ],
    [
      "mapping written the other way round",
      "mapping: { q: query }",
      "warning mapping-inverted @ implements[0].mapping.q",
    ],
    ["a longer timeout", "timeout_override_ms: 30001", "error timeout-widened @ implements[0].timeout_override_ms"],
  ])("reports %s", (_name, entry, expected) => {
    expect(faults(driver(entry))).toEqual([expected])
  })
  it("takes a timeout equal to the contract's", () => {
    expect(faults(driver("timeout_override_ms: 30000"))).toEqual([])
    expect(faults(driver("timeout_override_ms: 100", "timeout_override_ms: 40000"))).toEqual([
      "error timeout-widened @ timeout_override_ms",
    ])
  })
  it("reports a contract outside the version range", () => {
    expect(faults(driver("timeout_override_ms: 100"), { ...tool(), version: "2.0.0" })).toEqual([
      "error binding-version @ implements[0].version",
    ])
  })
  it("reports an entry for another tool", () => {
    expect(faults(driver("timeout_override_ms: 100"), { ...tool(), id: "t.two" })).toEqual([
      "error binding-tool @ implements[0].tool",
    ])
  })
  it("reports a cli entry that does not say how to call the program", () => {
    const d = asDriver(load("DRIVER.md", cliFront({ implements: "[{ tool: t.one, version: ^1.0.0 }]" })))
    expect(faults(d)).toEqual(["error binding-no-argv @ implements[0].metadata.cli.argv"])
  })
  it("warns about more attempts than the contract allows (C-23)", () => {
    expect(
      faults(driver("retry_override: { max_attempts: 9 }"), tool("retry: { max_attempts: 2, backoff: fixed }")),
    ).toEqual(["warning retry-capped @ implements[0].retry_override.max_attempts"])
  })
})

describe("settleMapping", () => {
  it("has the driver's key on the left, whichever way it was written (C-34)", () => {
    const d = driver("mapping: { q: query, width: { from: size, transform: px }, other: { from: q } }")
    expect(settleMapping(first(d), tool())).toEqual({
      query: { from: "q" },
      width: { from: "size", transform: "px" },
      other: { from: "q" },
    })
    expect(checkEntry(d, 0, tool()).implementation.mapping).toEqual(settleMapping(first(d), tool()))
  })
})

describe("checkRevision", () => {
  const at = (version: string, entry: string, spawn = "git"): DriverContract =>
    asDriver(
      load(
        "DRIVER.md",
        cliFront({
          implements: `[{ tool: t.one, version: ^1.0.0, ${entry} }]`,
          sandbox: `{ fs: {}, exec: { allow: true, spawn: [${spawn}] } }`,
        }).replace("version: 1.0.0", `version: ${version}`),
      ),
    )
  const drop = "schema_narrowing: { drop_inputs: [size] }"
  it("wants a new major when the narrowing changes", () => {
    expect(checkRevision(at("1.0.0", "mapping: {}"), at("1.9.0", drop)).map((d) => d.rule)).toEqual([
      "narrowing-without-major",
    ])
    expect(checkRevision(at("1.0.0", "mapping: {}"), at("2.0.0", drop))).toEqual([])
    expect(checkRevision(at("1.0.0", drop), at("1.0.1", drop))).toEqual([])
  })
  it("asks for review when more programs may be started", () => {
    expect(checkRevision(at("1.0.0", drop), at("1.0.1", drop, "git, sh")).map((d) => d.rule)).toEqual(["spawn-added"])
  })
})

describe("checkExecuteKeys", () => {
  it("wants the same tools in execute and implements, in either spelling (C-35)", () => {
    const d = driver("timeout_override_ms: 100")
    expect(checkExecuteKeys(d, ["t.one"])).toEqual([])
    expect(checkExecuteKeys(d, ["t-one"])).toEqual([])
    expect(checkExecuteKeys(d, ["t.two"])).toEqual([
      { tool: "t.one", missing: "execute" },
      { tool: "t.two", missing: "implements" },
    ])
  })
})
