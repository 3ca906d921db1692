/**
 * The schemas of manifests and files, each in one file that needs no other: `npm run bundle-schemas`.
 *
 * Guarantees: what `schemas/bundled` holds says the same as the schemas that Caisson itself checks with, in keywords of
 * JSON Schema 2020-12 alone: our own (`x-…`) and OpenAPI's `discriminator` are left out. A test makes them again and compares.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const folder = join(root, "schemas")

type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json }
type Schema = { readonly [key: string]: Json }

const sources = new Map(
  readdirSync(folder)
    .filter((name) => name.endsWith(".schema.json"))
    .map((name) => [name.replace(".schema.json", ""), JSON.parse(readFileSync(join(folder, name), "utf8")) as Schema]),
)

const KINDS = ["cli", "http", "sdk", "mcp", "builtin"] as const
const isObject = (value: Json | undefined): value is Schema =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Keywords below which the keys are names of an author's. */
const NAMED = new Set(["properties", "$defs", "patternProperties", "dependentSchemas"])
const VALUES = new Set(["const", "enum", "default", "examples"])

/** A reference as it is within the bundle: each schema it needs stands whole below `$defs`. */
const within = (ref: string, own: string, needed: Set<string>): string => {
  const [, name, pointer = ""] = /^urn:caisson:schema:([a-z-]+):1(?:#(.*))?$/.exec(ref) ?? []
  const target = name ?? own
  needed.add(target)
  return `#/$defs/${target}${name === undefined ? ref.slice(1) : pointer}`
}

const rewritten = (value: Json, own: string, needed: Set<string>, named = false): Json => {
  if (Array.isArray(value)) return (value as readonly Json[]).map((each) => rewritten(each, own, needed))
  if (!isObject(value)) return value
  return Object.fromEntries(
    Object.entries(value).flatMap(([key, each]): [string, Json][] => {
      if (named) return [[key, rewritten(each, own, needed)]]
      if (key.startsWith("x-") || key === "discriminator" || key === "$schema" || key === "$id") return []
      if (key === "$ref" && typeof each === "string") return [[key, within(each, own, needed)]]
      if (VALUES.has(key)) return [[key, each]]
      return [[key, rewritten(each, own, needed, NAMED.has(key))]]
    }),
  )
}

const refsIn = (value: Json): readonly string[] => {
  if (Array.isArray(value)) return (value as readonly Json[]).flatMap(refsIn)
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, each]) => (key === "$ref" ? [String(each)] : refsIn(each)))
}

/** Of the shapes that several share, those that are used here, by others that are. */
const pruned = (common: Schema, others: Json): Schema => {
  const defs = common["$defs"] as Schema
  const used = new Map<string, Json>()
  const take = (value: Json): void => {
    for (const ref of refsIn(value)) {
      const name = /^#\/\$defs\/common\/\$defs\/([^/]+)/.exec(ref)?.[1] ?? ""
      if (used.has(name) || defs[name] === undefined) continue
      used.set(name, defs[name])
      take(defs[name])
    }
  }
  take(others)
  return { ...common, $defs: Object.fromEntries(Object.entries(defs).filter(([name]) => used.has(name))) }
}

/** `top` refers to the schemas that it is made of by their names. */
const bundle = (name: string, title: string, top: (refer: (schema: string) => Schema) => Schema): Schema => {
  const needed = new Set<string>()
  const refer = (schema: string): Schema => {
    needed.add(schema)
    return { $ref: `#/$defs/${schema}` }
  }
  const shape = top(refer)
  const defs = new Map<string, Json>()
  for (const each of needed) {
    const source = sources.get(each)
    if (source === undefined) throw new Error(`there is no schema ${each}`)
    // Grows while it is walked, by what each one needs.
    defs.set(each, rewritten(source, each, needed))
  }
  const common = defs.get("common")
  if (isObject(common)) {
    defs.delete("common")
    defs.set("common", pruned(common, [...defs.values()]))
  }
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    $id: `urn:caisson:bundled:${name}:1`,
    title,
    ...shape,
    $defs: Object.fromEntries([...defs].toSorted(([a], [b]) => (a < b ? -1 : 1))),
  }
}

const titleOf = (name: string): string => String(sources.get(name)?.["title"] ?? name)

/** File name → text. */
export const bundledSchemas = (): ReadonlyMap<string, string> => {
  const driver = bundle("driver", "DRIVER.md of any kind", (refer) => ({
    allOf: [
      refer("driver"),
      ...KINDS.map((kind) => ({
        if: { required: ["kind"], properties: { kind: { const: kind } } },
        then: refer(`driver-${kind}`),
      })),
    ],
  }))
  const kinds = KINDS.map((kind) => {
    const name = `driver-${kind}`
    return [name, bundle(name, titleOf(name), (refer) => ({ allOf: [refer("driver"), refer(name)] }))] as const
  })
  const others = [...sources.keys()]
    .filter((name) => name !== "common" && name !== "driver" && !name.startsWith("driver-"))
    .map((name) => [name, bundle(name, titleOf(name), (refer) => refer(name))] as const)
  const all = [["driver", driver] as const, ...kinds, ...others]
  return new Map(all.map(([name, schema]) => [`${name}.schema.json`, `${JSON.stringify(schema, null, 1)}\n`]))
}

if (process.argv[1] === import.meta.filename) {
  mkdirSync(join(folder, "bundled"), { recursive: true })
  for (const [name, text] of bundledSchemas()) writeFileSync(join(folder, "bundled", name), text)
}
