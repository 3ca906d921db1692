/**
 * The picture of imports between the rooms of `src`, drawn from the sources into CONTRIBUTING.md.
 *
 * A room is a folder of `src`, a sub-room a folder in one; a file that lies loose in a room is a place of its own. The
 * test of import directions reads the same graph, and fails where the picture in CONTRIBUTING.md is not this one.
 * Run it after a change of imports: `npm run picture`.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, normalize, relative } from "node:path"
import { fileURLToPath } from "node:url"

const root = fileURLToPath(new URL("..", import.meta.url))
const BEGIN = "<!-- imports: npm run picture -->"
const END = "<!-- imports end -->"

/** @param {string} folder @returns {string[]} */
const filesIn = (folder) =>
  readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name)
    return entry.isDirectory() ? filesIn(path) : entry.name.endsWith(".ts") ? [path] : []
  })

/** @typedef {{ from: string, to: string }} Import both relative to `src` */

/** Every import of one source by another, types included. @param {string} [src] @returns {Import[]} */
export const readImports = (src = join(root, "src")) =>
  filesIn(src).flatMap((file) =>
    [...readFileSync(file, "utf8").matchAll(/(?:\bfrom|\bimport)\s*\(?\s*"(\.[^"]+)"/g)].map((match) => ({
      from: relative(src, file),
      to: relative(src, normalize(join(dirname(file), match[1]))),
    })),
  )

/** @param {string} file @returns {string} */
export const roomOf = (file) => file.split("/")[0] ?? file
/** The sub-room that a file lies in, or the file itself. @param {string} file @returns {string} */
export const placeOf = (file) => file.split("/").slice(0, 2).join("/")
/** @param {string} place @returns {boolean} */
export const isSubRoom = (place) => place.includes("/") && !place.endsWith(".ts")

/** @param {readonly Import[]} imports @param {(file: string) => string} of @returns {Map<string, Set<string>>} */
export const graphOf = (imports, of) => {
  const graph = new Map()
  for (const { from, to } of imports) {
    const [a, b] = [of(from), of(to)]
    for (const place of [a, b]) if (!graph.has(place)) graph.set(place, new Set())
    if (a !== b) graph.get(a).add(b)
  }
  return graph
}

/** Places that can be reached from themselves, each knot once (Tarjan). @param {Map<string, Set<string>>} graph @returns {string[][]} */
export const knotsOf = (graph) => {
  const [order, low, open] = [new Map(), new Map(), /** @type {string[]} */ ([])]
  /** @type {string[][]} */
  const knots = []
  /** @param {string} place */
  const visit = (place) => {
    order.set(place, order.size)
    low.set(place, order.get(place))
    open.push(place)
    for (const next of graph.get(place) ?? []) {
      if (!order.has(next)) visit(next)
      if (open.includes(next)) low.set(place, Math.min(low.get(place), low.get(next)))
    }
    if (low.get(place) !== order.get(place)) return
    const knot = open.splice(open.indexOf(place))
    if (knot.length > 1) knots.push(knot.sort())
  }
  for (const place of graph.keys()) if (!order.has(place)) visit(place)
  return knots
}

/** Whoever imports stands above what it imports. @param {Map<string, Set<string>>} graph @returns {string[]} */
const fromTheTop = (graph) => {
  const height = new Map()
  /** @param {string} place @param {readonly string[]} path @returns {number} */
  const heightOf = (place, path = []) => {
    if (path.includes(place)) return 0
    if (!height.has(place))
      height.set(
        place,
        1 + Math.max(-1, ...[...(graph.get(place) ?? [])].map((next) => heightOf(next, [...path, place]))),
      )
    return height.get(place)
  }
  return [...graph.keys()].sort((a, b) => heightOf(b) - heightOf(a) || (a < b ? -1 : 1))
}

/** @param {readonly Import[]} imports @returns {string} */
export const pictureOf = (imports) => {
  const rooms = graphOf(imports, roomOf)
  const between = imports.filter(({ from, to }) => isSubRoom(placeOf(from)) && isSubRoom(placeOf(to)))
  const subRooms = graphOf(between, placeOf)
  for (const { from } of imports)
    if (isSubRoom(placeOf(from)) && !subRooms.has(placeOf(from))) subRooms.set(placeOf(from), new Set())
  const order = fromTheTop(subRooms)
  const lines = fromTheTop(rooms).flatMap((room) => {
    const inside = order.filter((place) => place.startsWith(`${room}/`))
    const width = Math.max(0, ...inside.map((place) => place.length - room.length + 1)) + 1
    return [
      [room, ...(rooms.get(room)?.size ? ["→", [...rooms.get(room)].sort().join(", ")] : [])].join(" "),
      ...inside.map((place) => {
        const own = [...(subRooms.get(place) ?? [])].filter((to) => to.startsWith(`${room}/`)).sort()
        const name = `  ${place.slice(room.length + 1)}`
        return own.length === 0
          ? name
          : `${name.padEnd(width + 1)}→ ${own.map((to) => to.slice(room.length + 1)).join(", ")}`
      }),
    ]
  })
  return ["```", ...lines, "```"].join("\n")
}

/** @param {string} text of CONTRIBUTING.md @param {string} picture @returns {string} */
export const withPicture = (text, picture) => {
  const [before, rest = ""] = text.split(BEGIN)
  const after = rest.split(END)[1]
  if (after === undefined) throw new Error(`CONTRIBUTING.md has no ${BEGIN} … ${END}`)
  return `${before}${BEGIN}\n${picture}\n${END}${after}`
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const file = join(root, "CONTRIBUTING.md")
  writeFileSync(file, withPicture(readFileSync(file, "utf8"), pictureOf(readImports())))
}
