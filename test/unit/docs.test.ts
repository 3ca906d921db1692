/** What the documents list is what there is. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"

const root = fileURLToPath(new URL("../..", import.meta.url))
const read = (path: string): string => readFileSync(`${root}/${path}`, "utf8")
const rowsOf = (text: string): readonly string[] =>
  text.split("\n").flatMap((line) => (line.startsWith("| `") ? [line.split("|")[1] ?? ""] : []))
const named = (text: string): ReadonlySet<string> =>
  new Set(rowsOf(text).flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] as string)))

interface Package {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

test("names in docs/dependencies.md every package that is depended on, and no other", () => {
  const { dependencies, devDependencies } = JSON.parse(read("package.json")) as Package
  const [, runTime = "", tooling = "", absent = ""] = read("docs/dependencies.md").split(/^## .*$/m)
  expect(named(runTime)).toEqual(new Set(Object.keys(dependencies)))
  const typesAsOne = Object.keys(devDependencies).map((name) => (name.startsWith("@types/") ? "@types/*" : name))
  expect(named(tooling)).toEqual(new Set(typesAsOne))
  expect([...named(absent)].filter((name) => name in dependencies)).toEqual([])
})

test("depends at run time on nothing that no source imports", () => {
  const sources = globSync("src/**/*.ts", { cwd: root }).map(read).join("\n")
  const { dependencies } = JSON.parse(read("package.json")) as Package
  const unused = Object.keys(dependencies).filter(
    (name) => !new RegExp(`(?:from|import)\\s*\\(?\\s*"${name}(?:/[^"]*)?"`).test(sources),
  )
  expect(unused).toEqual([])
})

test("explains in docs/glossary.md every C- number that the source, its tests and documents name", () => {
  const explained = new Set([...read("docs/glossary.md").matchAll(/^\| (C-\d+) \|/gm)].map((match) => match[1]))
  const files = globSync(
    ["src/**/*.ts", "test/**/*.ts", "docs/*.md", "*.md", "schemas/**/*.json", "manifests/**/*.md"],
    {
      cwd: root,
    },
  )
  const used = new Set(files.flatMap((file) => read(file).match(/\bC-\d+\b/g) ?? []))
  expect([...used].filter((number) => !explained.has(number))).toEqual([])
})

test("the threat model names tests that there are", () => {
  const named = [...read("docs/threat-model.md").matchAll(/`(test\/[^`]+)`/g)].map((match) => match[1] as string)
  expect(named.length).toBeGreaterThan(40)
  expect(named.filter((path) => !existsSync(`${root}/${path}`))).toEqual([])
})
