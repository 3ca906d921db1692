import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { reasonCodes, reasons } from "../../../src/egress-proxy/policy/reasons.ts"

const root = join(import.meta.dirname, "../../..")
const folder = join(root, "src/egress-proxy")

describe("the proxy's table of reasons", () => {
  it("is documented row by row", () => {
    const documented = readFileSync(join(root, "docs/egress-proxy.md"), "utf8")
      .split("\n")
      .filter((line) => line.startsWith("| `") && line.split(" | ").length === 5)
    expect(documented).toEqual(
      reasonCodes.map((code) => {
        const { class: kind, status, text, hint } = reasons[code]
        return `| \`${code}\` | ${kind} | ${status} | ${text} | ${hint === "" ? "–" : hint} |`
      }),
    )
  })

  it("has no code that the proxy never gives", () => {
    const text = readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && entry.name !== "reasons.ts")
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))
      .join("\n")
    // `resolved_loopback` is made of `resolved_` and a class of address.
    const given = (code: string): boolean => text.includes(`"${code.replace(/^resolved_/, "")}"`)
    expect(reasonCodes.filter((code) => !given(code))).toEqual([])
  })
})
