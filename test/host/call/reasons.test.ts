import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { type Reason, reasons } from "../../../src/host/reasons.ts"

const root = join(import.meta.dirname, "../../..")
const documented = new Map(
  readFileSync(join(root, "docs/reasons.md"), "utf8")
    .split("\n")
    .filter((line) => line.startsWith("| `"))
    .map((line) =>
      line
        .split("|")
        .slice(1, -1)
        .map((cell) => cell.trim()),
    )
    .map(([code = "", ...rest]) => [code.replaceAll("`", "") as keyof typeof reasons, rest]),
)

const sources = (folder: string): string[] =>
  readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".ts") && entry.name !== "reasons.ts")
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"))

describe("the table of reasons", () => {
  it("is documented row by row", () => {
    expect([...documented.keys()].sort()).toEqual(Object.keys(reasons).sort())
    for (const [code, row] of Object.entries(reasons) as [keyof typeof reasons, Reason][]) {
      expect(documented.get(code)?.slice(0, 6), code).toEqual([
        row.class,
        String(row.status),
        String(row.exit),
        row.retryable ? "yes" : "no",
        row.message,
        row.hint,
      ])
      expect(documented.get(code)?.[6], code).toMatch(/\w/)
    }
  })

  it("gives each class one kind of exit code", () => {
    const byClass = new Map<string, Set<number>>()
    for (const row of Object.values(reasons))
      byClass.set(row.class, (byClass.get(row.class) ?? new Set()).add(row.exit))
    expect(Object.fromEntries([...byClass].map(([name, exits]) => [name, [...exits].sort()]))).toEqual({
      invalid: [2],
      routing: [5],
      "needs-action": [4],
      denied: [3],
      violation: [3],
      tool: [1],
      infrastructure: [5],
    })
  })

  it("has no code that the host never gives, but those documented as reserved", () => {
    const text = [...sources("src/host"), ...sources("src/daemon")].join("\n")
    const silent = Object.keys(reasons).filter((code) => !text.includes(`"${code}"`))
    for (const code of silent) expect(documented.get(code as keyof typeof reasons)?.[6], code).toMatch(/^reserved:/)
  })
})
