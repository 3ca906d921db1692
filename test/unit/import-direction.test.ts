import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, normalize, relative } from "node:path"
import { expect, it } from "vitest"

const src = join(import.meta.dirname, "../../src")
/** room → rooms it may import from; its own is always allowed */
const allowed: Readonly<Record<string, readonly string[]>> = {
  manifest: [],
  linux: [],
  "egress-proxy": ["manifest"],
  sandbox: ["manifest", "linux"],
  runner: [],
  host: ["linux", "sandbox", "egress-proxy", "manifest"],
  cli: ["host", "sandbox", "egress-proxy", "manifest"],
}

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => join(entry.parentPath, entry.name))
const imports = (file: string): string[] =>
  [...readFileSync(file, "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g)].map((match) =>
    normalize(join(dirname(file), match[1] as string)),
  )
const roomOf = (file: string): string => relative(src, file).split("/")[0] as string

it("imports go one way: cli → host → sandbox, egress-proxy → manifest", () => {
  const wrong = files.flatMap((file) =>
    imports(file)
      .filter((target) => roomOf(target) !== roomOf(file) && !allowed[roomOf(file)]?.includes(roomOf(target)))
      .map((target) => `${relative(src, file)} imports ${relative(src, target)}`),
  )
  expect(wrong).toEqual([])
  expect(files.flatMap(imports).length).toBeGreaterThan(100)
})

it("knows every room", () => {
  expect([...new Set(files.map(roomOf))].filter((room) => !(room in allowed))).toEqual([])
})

it("the two backends know nothing of each other, and what they share knows neither", () => {
  const backends = ["sandbox/namespace/", "sandbox/docker/"]
  const backendOf = (file: string): string | undefined => backends.find((room) => relative(src, file).startsWith(room))
  const wrong = files
    .filter((file) => roomOf(file) === "sandbox" && relative(src, file) !== "sandbox/index.ts")
    .flatMap((file) =>
      imports(file)
        .filter((target) => backendOf(target) !== undefined && backendOf(target) !== backendOf(file))
        .map((target) => `${relative(src, file)} imports ${relative(src, target)}`),
    )
  expect(wrong).toEqual([])
})
