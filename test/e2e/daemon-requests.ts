/** Requests of every operation of a document, as fast-check draws them: most as the document asks, others bent. */
import fc from "fast-check"
import type { OpenApi } from "../../scripts/client-types.ts"

export interface Drawn {
  readonly operationId: string
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string
}
type Schema = Readonly<Record<string, unknown>>
type Arbitrary = fc.Arbitrary<unknown>

/** What mostly leads nowhere, or where it should not. */
const odd = fc.constantFrom(
  ...[
    "",
    " ",
    ".",
    "..",
    "../../etc/passwd",
    "/",
    "//",
    "/etc",
    "%2e%2e",
    "\u0000",
    "\u202e",
    "😀",
    "__proto__",
    "constructor",
  ],
  ...[
    "id@1",
    "@",
    "a@b@c",
    "'; DROP TABLE calls; --",
    "${jndi:ldap://x}",
    "a".repeat(256),
    "a".repeat(5000),
    "-1",
    "1e309",
    "null",
  ],
)
const textOf = ({ minLength = 0, maxLength = 200, format }: Schema, known: fc.Arbitrary<string>): Arbitrary => {
  if (format === "date-time") return fc.date({ noInvalidDate: true }).map((at) => at.toISOString())
  const [least, most] = [Number(minLength), Math.min(Number(maxLength), 200)]
  return fc.oneof(
    { arbitrary: known, weight: 6 },
    { arbitrary: odd, weight: 2 },
    { arbitrary: fc.string({ minLength: least, maxLength: most, unit: "grapheme" }), weight: 1 },
  )
}

const objectOf = (schema: Schema, known: fc.Arbitrary<string>): Arbitrary => {
  const properties = (schema["properties"] ?? {}) as Readonly<Record<string, Schema>>
  const requiredKeys = ((schema["required"] ?? []) as string[]).filter((key) => key in properties)
  const model = Object.fromEntries(Object.entries(properties).map(([key, one]) => [key, valueOf(one, known)]))
  if (Object.keys(model).length === 0) return fc.dictionary(fc.string({ maxLength: 20 }), fc.jsonValue({ maxDepth: 2 }))
  return fc.record(model, { requiredKeys })
}

const valueOf = (schema: Schema, known: fc.Arbitrary<string>): Arbitrary => {
  const { type, enum: choices, const: only, oneOf, anyOf, items } = schema
  if (only !== undefined) return fc.constant(only)
  if (Array.isArray(choices)) return fc.constantFrom(...(choices as unknown[]))
  for (const ways of [oneOf, anyOf])
    if (Array.isArray(ways)) return fc.oneof(...(ways as Schema[]).map((way) => valueOf(way, known)))
  switch (type) {
    case "string":
      return textOf(schema, known)
    case "boolean":
      return fc.boolean()
    case "integer":
      return fc.oneof(fc.integer({ min: -2, max: 300 }), fc.maxSafeInteger())
    case "number":
      return fc.oneof(fc.integer({ min: -2, max: 400 }), fc.double())
    case "array":
      return fc.array(valueOf((items ?? {}) as Schema, known), { maxLength: 4 })
    case "object":
      return objectOf(schema, known)
    default:
      return fc.jsonValue({ maxDepth: 3 })
  }
}

/** A body as asked for, or bent: another value, a key too many or too few, no JSON at all. */
const bodyOf = (schema: Schema, own: Arbitrary | undefined, known: fc.Arbitrary<string>): fc.Arbitrary<string> => {
  const asked = own === undefined ? valueOf(schema, known) : fc.oneof(own, valueOf(schema, known))
  const bent = fc
    .tuple(asked, fc.string({ maxLength: 12 }), fc.jsonValue({ maxDepth: 3 }))
    .map(([body, key, value]) => {
      const copy = { ...(body as Record<string, unknown>) }
      if (key in copy) delete copy[key]
      else Object.defineProperty(copy, key, { value, enumerable: true })
      return copy
    })
  return fc.oneof(
    { arbitrary: asked.map((body) => JSON.stringify(body)), weight: 8 },
    { arbitrary: bent.map((body) => JSON.stringify(body)), weight: 2 },
    { arbitrary: fc.json({ maxDepth: 6 }), weight: 1 },
    {
      arbitrary: fc.constantFrom(
        ...[
          "",
          "{",
          "[",
          "nul",
          '{"tool":',
          "\u0000",
          '{"__proto__":{"tool":"x"}}',
          `${"[".repeat(20_000)}`,
          '{"a":1,"a":2}',
        ],
        `{"tool":"${"x".repeat(300_000)}"}`,
      ),
      weight: 1,
    },
  )
}

const headerSafe = (value: unknown): string =>
  String(value)
    .replaceAll(/[^\x20-\x7e]/g, "?")
    .trim()

interface World {
  /** names that lead somewhere */
  readonly known: fc.Arbitrary<string>
  /** bodies that an operation can do something with, beside those that its schema allows */
  readonly bodies: Readonly<Record<string, Arbitrary>>
}

export const requestsOf = ({ paths }: OpenApi, { known, bodies }: World): fc.Arbitrary<Drawn> => {
  const operations = Object.entries(paths).flatMap(([template, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const parameters = operation.parameters ?? []
      const inPart = (part: string): fc.Arbitrary<Readonly<Record<string, unknown>>> => {
        const own = parameters.filter((parameter) => parameter.in === part)
        const model = Object.fromEntries(own.map(({ name, schema }) => [name, valueOf(schema, known)]))
        return fc.record(model, { requiredKeys: part === "path" ? Object.keys(model) : [] })
      }
      const schema = operation.requestBody?.content["application/json"]?.schema
      const body =
        schema === undefined
          ? fc.option(fc.constant("{}"), { nil: undefined, freq: 10 })
          : bodyOf(schema, bodies[operation.operationId], known)
      const common = fc.record(
        {
          "caisson-user": fc.constantFrom("alice", "bob", "", "no one", "a/../b", "-"),
          accept: fc.constantFrom("*/*", "text/plain", "application/json;q=0"),
          "content-type": fc.constantFrom(
            "text/plain",
            "application/xml",
            "application/json; charset=latin1",
            "nonsense",
          ),
        },
        { requiredKeys: [] },
      )
      const rare = fc.oneof({ arbitrary: fc.constant({}), weight: 8 }, { arbitrary: common, weight: 1 })
      return fc
        .tuple(inPart("path"), inPart("query"), inPart("header"), rare, body)
        .map(([inPath, query, header, other, sent]): Drawn => {
          const path = template.replaceAll(/\{([^}]+)\}/g, (_, name: string) =>
            encodeURIComponent(String(inPath[name]).toWellFormed()).replaceAll(".", "%2E"),
          )
          const asked = new URLSearchParams(
            Object.entries(query).map(([name, value]) => [name, String(value)] as [string, string]),
          ).toString()
          const headers = Object.fromEntries(
            Object.entries({ ...header, ...other }).map(([name, value]) => [name, headerSafe(value)]),
          )
          return {
            operationId: operation.operationId,
            method: method.toUpperCase(),
            path: asked === "" ? path : `${path}?${asked}`,
            headers,
            ...(sent === undefined ? {} : { body: sent }),
          }
        })
    }),
  )
  return fc.oneof(...operations)
}
