import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { cliFront, load, toolFront } from "./from-text.ts"

const fixes = (result: ReturnType<typeof load>): readonly string[] => result.diagnostics.map((each) => each.fix)

describe("the fix of a manifest that lacks or mistypes a field", () => {
  it.each(["version", "inputs", "outputs", "description", "name"])("shows what to write for %s", (key) => {
    const front = toolFront().replace(new RegExp(`^${key}:.*(?:\\n  .*)*$`, "m"), "")
    const [fix = ""] = fixes(load("TOOL.md", front))
    const example = /as in `(.+)`$/.exec(fix)?.[1] ?? ""
    expect(fix).toContain(`add \`${key}:\``)
    expect(Object.keys(parse(example) as object)).toEqual([key])
    // What the fix shows is accepted where it was asked for.
    expect(load("TOOL.md", `${front}\n${example}`).ok).toBe(true)
  })

  it("shows the form of a value of another type", () => {
    expect(fixes(load("TOOL.md", toolFront("timeout_ms: soon")))).toEqual([
      "write a whole number, as in `timeout_ms: 30000`",
    ])
    expect(fixes(load("TOOL.md", toolFront("idempotent: 'yes'")))).toEqual([
      "write true or false, as in `idempotent: true`",
    ])
    expect(fixes(load("DRIVER.md", cliFront({ extra: "policy_tags: third-party" })))).toEqual([
      "write a list, as in `policy_tags: [one, two]`",
    ])
  })
})
