import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
interface Import {
  readonly from: string
  readonly to: string
}
type Graph = ReadonlyMap<string, ReadonlySet<string>>
const { readImports, roomOf, placeOf, isSubRoom, graphOf, knotsOf, pictureOf, withPicture } = (await import(
  join(root, "scripts/import-picture.mjs")
)) as {
  readImports(src?: string): readonly Import[]
  roomOf(file: string): string
  placeOf(file: string): string
  isSubRoom(place: string): boolean
  graphOf(imports: readonly Import[], of: (file: string) => string): Graph
  knotsOf(graph: Graph): readonly (readonly string[])[]
  pictureOf(imports: readonly Import[]): string
  withPicture(text: string, picture: string): string
}

/** room → rooms it may import from; its own is always allowed */
const allowed: Readonly<Record<string, readonly string[]>> = {
  base: [],
  "data-folder": [],
  manifest: [],
  define: ["manifest"],
  linux: [],
  "egress-proxy": ["base", "manifest"],
  sandbox: ["manifest", "linux", "data-folder"],
  runner: [],
  host: ["base", "linux", "sandbox", "egress-proxy", "define", "manifest", "data-folder"],
  "mcp-server": ["host", "manifest"],
  authoring: ["manifest"],
  daemon: ["mcp-server", "host", "linux", "manifest", "data-folder"],
  client: [],
  cli: [
    "authoring",
    "client",
    "data-folder",
    "daemon",
    "mcp-server",
    "host",
    "linux",
    "sandbox",
    "egress-proxy",
    "manifest",
  ],
}
const imports = readImports()
const told = ({ from, to }: Import): string => `${from} imports ${to}`

it("imports go one way: cli → client, daemon → host → sandbox, egress-proxy → manifest", () => {
  const wrong = imports.filter(({ from, to }) => {
    const [room, other] = [roomOf(from), roomOf(to)]
    return room !== other && !allowed[room]?.includes(other)
  })
  expect(wrong.map(told)).toEqual([])
  expect(imports.length).toBeGreaterThan(100)
})

it("knows every room", () => {
  expect(readdirSync(join(root, "src")).filter((room) => !(room in allowed))).toEqual([])
})

it("the folders of a room import one way, and so do the files beside them", () => {
  const knots = knotsOf(graphOf(imports, placeOf)).filter((knot) => knot.some(isSubRoom))
  expect(knots).toEqual([])
})

it("finds a knot, however long the way round, and none where there is none", () => {
  const graph = (...edges: readonly (readonly [string, string])[]): Graph =>
    graphOf(
      edges.map(([from, to]) => ({ from, to })),
      (file) => file,
    )
  expect(knotsOf(graph(["a", "b"], ["b", "c"], ["c", "a"], ["c", "d"]))).toEqual([["a", "b", "c"]])
  expect(knotsOf(graph(["a", "b"], ["a", "c"], ["b", "c"]))).toEqual([])
})

it("the two backends know nothing of each other, and what they share knows neither", () => {
  const backends = ["sandbox/namespace", "sandbox/docker"]
  const wrong = imports.filter(
    ({ from, to }) =>
      roomOf(from) === "sandbox" &&
      from !== "sandbox/index.ts" &&
      backends.includes(placeOf(to)) &&
      placeOf(from) !== placeOf(to),
  )
  expect(wrong.map(told)).toEqual([])
})

it("the picture in CONTRIBUTING.md is that of the sources; `npm run picture` draws it", () => {
  const text = readFileSync(join(root, "CONTRIBUTING.md"), "utf8")
  expect(text).toBe(withPicture(text, pictureOf(imports)))
})

it("no folder of the sources holds more files than can be seen at a glance", () => {
  const folders = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  )
  const counts = Map.groupBy(folders, ({ parentPath }) => parentPath)
  const large = [...counts]
    .filter(([, files]) => files.length > 18)
    .map(([folder, { length }]) => `${folder}: ${length}`)
  expect(large).toEqual([])
})

it("paths of the data folder are named in one file", () => {
  const files = readdirSync(join(root, "src"), { recursive: true, encoding: "utf8" }).filter(
    (name) => name.endsWith(".ts") && name !== "data-folder/paths.ts",
  )
  const naming = files.filter((name) =>
    /\bjoin\(\s*(?:[a-z]+\.)?data\s*,\s*["`]/.test(readFileSync(join(root, "src", name), "utf8")),
  )
  expect(naming).toEqual([])
})
