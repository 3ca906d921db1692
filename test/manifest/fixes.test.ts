import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Ajv2020 } from "ajv/dist/2020.js"
import { describe, expect, it } from "vitest"
import { parse } from "yaml"
import { asIn, type FieldShape } from "../../src/manifest/schema/field-examples.ts"
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

describe("what the schemas require", () => {
  const folder = fileURLToPath(new URL("../../schemas/", import.meta.url))
  const names = readdirSync(folder).filter((name) => !/^(?:envelope|audit-event|config|egress-policy)\./.test(name))
  const schemas = names
    .filter((name) => name.endsWith(".schema.json"))
    .map((name) => JSON.parse(readFileSync(`${folder}${name}`, "utf8")) as Record<string, unknown>)
  const ajv = new Ajv2020({ strict: false, discriminator: true, logger: false, schemas })
  ajv.addVocabulary(["x-fix"])
  interface Required {
    readonly at: string
    readonly key: string
    readonly shape: FieldShape
  }
  const required = (schema: unknown, at: string): readonly Required[] => {
    if (typeof schema !== "object" || schema === null) return []
    const { required: keys, properties = {} } = schema as FieldShape
    const own = (Array.isArray(keys) ? (keys as readonly string[]) : []).flatMap((key): readonly Required[] => {
      const shape = properties[key]
      return shape === undefined ? [] : [{ at: `${at}/properties/${key}`, key, shape }]
    })
    return [...own, ...Object.entries(schema).flatMap(([key, each]) => required(each, `${at}/${key}`))]
  }
  const all = schemas.flatMap((schema) => required(schema, `${String(schema["$id"])}#`))

  it("has an example to paste for each field, which is accepted there", () => {
    expect(all.length).toBeGreaterThan(60)
    const wrong = all.filter(({ at, key, shape }) => {
      const example = /as in `(.+)`$/.exec(asIn(key, undefined, shape))?.[1] ?? ""
      const value = (parse(example) as Record<string, unknown> | null)?.[key]
      return value === undefined || !ajv.validate({ $ref: at }, value)
    })
    expect(wrong.map(({ at }) => at)).toEqual([])
  })
})
