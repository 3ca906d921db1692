import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Ajv2020 } from "ajv/dist/2020.js"
import formats from "ajv-formats"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { bundledSchemas } from "../../scripts/bundle-schemas.ts"
import { createReport } from "../../src/manifest/values/diagnostics.ts"
import { checkShape } from "../../src/manifest/schema/shape.ts"
import type { JsonObject } from "../../src/manifest/types.ts"

const root = fileURLToPath(new URL("../../", import.meta.url))
const folder = join(root, "schemas", "bundled")
const names = readdirSync(folder)
const read = (name: string): JsonObject => JSON.parse(readFileSync(join(folder, name), "utf8")) as JsonObject

/** Nothing but the one schema, and nothing that is not of the standard. */
const alone = (name: string): ((value: unknown) => boolean) => {
  const ajv = new Ajv2020({ strictTypes: false, strictRequired: false, strictTuples: false, logger: false })
  formats.default(ajv)
  return ajv.compile(read(name))
}

describe("schemas/bundled", () => {
  it("holds what `npm run bundle-schemas` makes of the schemas", () => {
    const made = bundledSchemas()
    expect(names.toSorted()).toEqual([...made.keys()].toSorted())
    for (const [name, text] of made)
      expect([name, readFileSync(join(folder, name), "utf8") === text]).toEqual([name, true])
  })

  it.each(names)("%s compiles alone, under an id of its own", (name) => {
    expect(read(name)["$id"]).toBe(`urn:caisson:bundled:${name.replace(".schema.json", "")}:1`)
    expect(alone(name)).toBeTypeOf("function")
  })

  const fronts = (file: string): readonly JsonObject[] =>
    readdirSync(join(root, "manifests"), { recursive: true, encoding: "utf8" })
      .filter((path) => path.endsWith(`/${file}`))
      .map((path) => parse(readFileSync(join(root, "manifests", path), "utf8").split(/^---$/m)[1] ?? "") as JsonObject)

  it("takes the catalogue, and refuses what Caisson refuses", () => {
    const [tool, driver] = [alone("tool.schema.json"), alone("driver.schema.json")]
    const tools = fronts("TOOL.md")
    const drivers = fronts("DRIVER.md")
    expect(tools.length).toBeGreaterThan(20)
    for (const front of tools) expect([front["id"], tool(front)]).toEqual([front["id"], true])
    for (const front of drivers) expect([front["id"], driver(front)]).toEqual([front["id"], true])
    const without = (front: JsonObject, key: string): JsonObject =>
      Object.fromEntries(Object.entries(front).filter(([name]) => name !== key))
    for (const [front, shape, check] of [
      ...tools.map((each) => [each, "tool", tool] as const),
      ...drivers.map((each) => [each, "driver", driver] as const),
    ])
      for (const key of Object.keys(front)) {
        for (const bent of [without(front, key), { ...front, [key]: { odd: 1 } }]) {
          // The universal layer alone is checked here for a driver; what it refuses, the bundle refuses.
          if (!checkShape(shape, bent, createReport("x")))
            expect([front["id"], key, check(bent)]).toEqual([front["id"], key, false])
        }
      }
  })

  it("knows the kinds apart", () => {
    const [jq] = fronts("DRIVER.md").filter((front) => front["id"] === "jq")
    expect(alone("driver.schema.json")({ ...jq, bin: undefined })).toBe(false)
    expect(alone("driver.schema.json")({ ...jq, kind: "http" })).toBe(false)
    expect(alone("driver-cli.schema.json")(jq)).toBe(true)
    expect(alone("driver-http.schema.json")(jq)).toBe(false)
  })
})
