import { describe, expect, it } from "vitest"
import { plan } from "../../../src/sandbox/effects/commit/plan.ts"
import type { Effect, EffectKind } from "../../../src/sandbox/effects/types.ts"

const effects = (lines: readonly string[]): Effect[] =>
  lines.map((line) => {
    const [kind, rest] = line.split(" ") as [EffectKind, string]
    const [from, path] = rest.includes(">") ? rest.split(">") : [undefined, rest]
    return { kind, path: path as string, ...(from === undefined ? {} : { from }) }
  })
const planned = (lines: readonly string[], only?: (path: string) => boolean): string[] =>
  plan(effects(lines), only).map(
    ({ kind, path, content }) => `${kind} ${path}${content.length > 1 ? ` +${content.length - 1}` : ""}`,
  )

describe("the moves of a commit", () => {
  it.each<[string, string[], string[]]>([
    [
      "a new tree moves as one",
      ["mkdir d", "create d/a", "mkdir d/e", "create d/e/b", "create d-z"],
      ["put d +3", "put d-z"],
    ],
    ["a removed tree moves as one", ["rmdir d", "delete d/a", "rmdir d/e", "delete d/e/b"], ["remove d"]],
    ["a file takes a tree's place", ["rmdir d", "create d", "delete d/a"], ["replace d"]],
    ["a tree takes a file's place", ["delete d", "mkdir d", "create d/a"], ["replace d +1"]],
    [
      "changes in an old folder stay apart",
      ["modify d/a", "delete d/b", "create d/c"],
      ["replace d/a", "remove d/b", "put d/c"],
    ],
    ["a rename is a removal and a new entry", ["rename a>b"], ["remove a", "put b"]],
    ["a rename out of a removed tree", ["rmdir d", "rename d/a>e"], ["remove d", "put e"]],
    ["mode and attributes are one move", ["chmod a", "xattr a"], ["attributes a"]],
    ["a folder's mode beside what is in it", ["chmod d", "create d/a"], ["attributes d", "put d/a"]],
  ])("%s", (_name, lines, expected) => {
    expect(planned(lines)).toEqual(expected)
  })

  it("keep a removed folder in its place while something in it is not to be touched", () => {
    const lines = ["rmdir d", "delete d/a", "rmdir d/e", "delete d/e/b"]
    expect(planned(lines, (path) => path !== "d/e/b")).toEqual(["remove d/a"])
  })
  it("make the folders that a chosen file needs", () => {
    const lines = ["mkdir d", "create d/a", "mkdir d/e", "create d/e/b"]
    expect(planned(lines, (path) => path === "d/e/b")).toEqual(["put d +2"])
  })
  it("split a rename of which one end is chosen", () => {
    expect(planned(["rename a>b"], (path) => path === "a")).toEqual(["remove a"])
    expect(planned(["rename a>b"], (path) => path === "b")).toEqual(["put b"])
  })
})
