import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { readConfig } from "../../../src/host/config/read.ts"
import type { Ceiling } from "../../../src/host/registry/ceiling.ts"
import { createRegistry } from "../../../src/host/registry/registry.ts"
import type { Registry } from "../../../src/host/registry/types.ts"
import { cliFront, toolFront } from "../../manifest/from-text.ts"

const folder = mkdtempSync(join(tmpdir(), "caisson-ceiling-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const registry = (ceiling: Ceiling, tool: string, driver = "", action = ""): Registry => {
  const files = {
    "TOOL.md": toolFront(tool),
    "DRIVER.md": cliFront({ extra: driver }),
    "ACTION.md": `schema: action/v1\nid: a:b\ndescription: d\n${action}`,
  }
  for (const [name, front] of Object.entries(files)) writeFileSync(join(folder, name), `---\n${front}\n---\n`)
  return createRegistry({ dirs: [{ dir: folder, trusted: true }], mode: "compat", ceiling })
}
const said = ({ diagnostics }: Registry): readonly (readonly [string, string])[] =>
  diagnostics.filter((each) => each.rule === "above-ceiling").map(({ path, message }) => [path, message])

describe("the operator's ceiling", () => {
  it.each<[string, Ceiling, string, string, string]>([
    ["risk", { riskLevel: 1 }, "risk_level: 2", "risk_level", "allowed: 1; declared: 2"],
    [
      "effects",
      { mutates: ["workspace:/notes/"] },
      'mutates: ["workspace:/"]\napproval: always',
      "mutates",
      "it would let `workspace:/x/y/z` pass",
    ],
    [
      "required hosts",
      { egress: ["*.good.test"] },
      "requires: { network: [evil.test] }",
      "requires.network",
      "it would let `evil.test:443` pass",
    ],
    [
      "required secrets",
      { secrets: [] },
      "requires: { secrets: [a-key] }",
      "requires.secrets",
      "it would let `a-key` pass",
    ],
  ])("refuses a tool beyond its %s, with an example", (_, ceiling, tool, path, message) => {
    const found = registry(ceiling, tool)
    expect(found.tools).toEqual([])
    expect(said(found)).toEqual([[path, expect.stringContaining(message) as string]])
    expect(found.failed.map((each) => each.kind)).toContain("tool")
  })
  it("refuses a driver beyond its hosts, and leaves the tool standing", () => {
    const found = registry({ egress: ["*.good.test"] }, "", "network: { egress: [a.good.test, evil.test:8080] }")
    expect(found.tools).toHaveLength(1)
    expect(found.drivers[0]?.refusal?.reason).toContain("it would let `evil.test:8080` pass")
    expect(found.drivers[0]?.bindings).toEqual([])
  })
  it.each<[string, readonly string[], string | undefined]>([
    ["none", [], "it would let `prod-db` pass"],
    ["another", ["api-key"], "it would let `prod-db` pass"],
    ["by its slug", ["prod-db"], undefined],
    ["by its variable", ["PROD_DB"], undefined],
  ])("bounds what a driver is given of the vault: %s allowed", (_, secrets, message) => {
    const [driver] = registry({ secrets }, "", "auth: { state: { env: [PROD_DB] } }").drivers
    if (message === undefined) expect(driver?.refusal).toBeUndefined()
    else expect(driver?.refusal?.reason).toContain(message)
  })
  it("goes by the secret that a variable stands for, not by the variable", () => {
    const file = join(folder, "SECRETS.md")
    const entry = "{ slug: prod-db, name: n, description: d, metadata: { bindings: { env: [API_KEY] } } }"
    writeFileSync(file, `---\nsecrets: [${entry}]\n---\n`)
    try {
      const allowed = registry({ secrets: ["api-key"] }, "", "auth: { state: { env: [API_KEY] } }")
      expect(allowed.drivers[0]?.refusal?.reason).toContain("it would let `prod-db` pass")
    } finally {
      rmSync(file)
    }
  })
  it("refuses an action, and with it the tools that carry it out", () => {
    const found = registry({ riskLevel: 1 }, "implements: a:b", "", "risk_level: 3")
    expect(found.actions).toEqual([])
    expect(found.tools).toEqual([])
  })
  it.each<[string, Ceiling]>([
    ["where there is none", {}],
    ["at its very height", { riskLevel: 2, mutates: ["workspace:/notes/"], egress: ["a.test"], secrets: ["a-key"] }],
    [
      "where it is higher",
      { riskLevel: 3, mutates: ["workspace:/"], egress: ["a.test", "b.test"], secrets: ["a-key", "b"] },
    ],
  ])("lets pass %s", (_, ceiling) => {
    const tool =
      'mutates: ["workspace:/notes/"]\napproval: always\nrisk_level: 2\nrequires: { network: [a.test], secrets: [a-key] }'
    const found = registry(ceiling, tool, "network: { egress: [a.test] }")
    expect(said(found)).toEqual([])
    expect([found.tools.length, found.drivers[0]?.refusal]).toEqual([1, undefined])
  })
})

describe("`ceiling` in caisson.yaml", () => {
  it("is read", () => {
    const text = 'ceiling: { risk_level: 1, mutates: ["workspace:/"], egress: ["*.good.test"], secrets: [a-key] }'
    expect(readConfig(text, "/c.yaml", "/")).toMatchObject({
      ok: true,
      config: { ceiling: { riskLevel: 1, mutates: ["workspace:/"], egress: ["*.good.test"], secrets: ["a-key"] } },
    })
  })
  it.each([
    "{ risk_level: 4 }",
    "{ egress: ['*'] }",
    "{ mutates: [all] }",
    "{ mutates: ['workspace:/../x'] }",
    "{ hosts: [] }",
  ])("is refused as %s", (written) => {
    expect(readConfig(`ceiling: ${written}`, "/c.yaml", "/").ok).toBe(false)
  })
})
