/**
 * The tables of docs/manifests.md, made of the schemas that manifests are checked against: `npm run manifest-reference`.
 *
 * Guarantees: every field of each manifest is a row, with its type, whether it has to be there, and what it means; a field
 * that no schema describes ends it. A test makes the tables again and compares.
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")

interface Schema {
  readonly $ref?: string
  readonly description?: string
  readonly type?: string
  readonly const?: unknown
  readonly enum?: readonly unknown[]
  readonly required?: readonly string[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: boolean | Schema
  readonly items?: Schema
  readonly anyOf?: readonly Schema[]
  readonly oneOf?: readonly Schema[]
  readonly $defs?: Readonly<Record<string, Schema>>
}

interface Row {
  readonly path: string
  readonly type: string
  readonly required: boolean
  readonly meaning: string
}

/** Heading, schema, and what it is told after: of a subtype, the fields of the universal layer are left out. */
const manifests: readonly (readonly [heading: string, schema: string, above?: string])[] = [
  ["TOOL.md", "tool"],
  ["DRIVER.md, of every kind", "driver"],
  ["DRIVER.md of kind cli", "driver-cli", "driver"],
  ["CLI.md", "cli"],
  ["HTTP.md, or DRIVER.md of kind http", "driver-http", "driver"],
  ["MCP.md, or DRIVER.md of kind mcp", "driver-mcp", "driver"],
  ["SDK.md, or DRIVER.md of kind sdk", "driver-sdk", "driver"],
  ["DRIVER.md of kind builtin", "driver-builtin", "driver"],
  ["ACTION.md", "action"],
  ["AUTH.md", "auth"],
  ["SECRETS.md", "secrets"],
  ["SANDBOX.md", "sandbox"],
  ["POLICY.md of `schema: policy/v1`", "policy-grants"],
  ["POLICY.md of `schema: agentgovernance/v1`", "policy-governance"],
]
/** Blocks that several manifests have: told once, and named elsewhere. */
const shared: readonly (readonly [heading: string, pointer: string, word: string])[] = [
  ["The `sandbox` block", "common#/$defs/sandbox", "[`sandbox`](#the-sandbox-block)"],
  ["The `sandbox` of one tool", "common#/$defs/sandboxNarrowing", "[`sandbox`, narrower](#the-sandbox-of-one-tool)"],
  ["The `output` block", "common#/$defs/output", "[`output`](#the-output-block)"],
  ["The `auth` block", "common#/$defs/auth", "[`auth`](#the-auth-block)"],
  ["The `setup` steps", "common#/$defs/setup", "[steps](#the-setup-steps)"],
  ["The `install` methods", "common#/$defs/install", "[methods](#the-install-methods)"],
  ["The `runner` block", "common#/$defs/runnerInline", "[`runner`](#the-runner-block)"],
  ["The `conform` block", "common#/$defs/conform", "[`conform`](#the-conform-block)"],
  ["The `version_check` block", "common#/$defs/versionCheck", "[`version_check`](#the-version_check-block)"],
]

const files = new Map<string, Schema>()
const fileOf = (name: string): Schema => {
  const found = files.get(name)
  if (found !== undefined) return found
  const read = JSON.parse(readFileSync(join(root, "schemas", `${name}.schema.json`), "utf8")) as Schema
  files.set(name, read)
  return read
}

const pointed = (pointer: string): Schema => {
  const [name = "", path = ""] = pointer.split("#")
  return path
    .split("/")
    .slice(1)
    .reduce<Schema>((at, key) => {
      const next = (at as Readonly<Record<string, Schema>>)[key]
      if (next === undefined) throw new Error(`${pointer} names nothing`)
      return next
    }, fileOf(name))
}

/** `urn:caisson:schema:common:1#/$defs/x`, or `#/$defs/x` of the same file, as `common#/$defs/x`. */
const pointerOf = (ref: string, file: string): string =>
  ref.startsWith("#") ? `${file}${ref}` : ref.replace(/^urn:caisson:schema:([a-z-]+):\d+/, "$1")

interface Placed {
  readonly schema: Schema
  readonly file: string
  readonly pointer: string | undefined
}
const resolved = ({ schema, file }: { schema: Schema; file: string }): Placed => {
  if (schema.$ref === undefined) return { schema, file, pointer: undefined }
  const pointer = pointerOf(schema.$ref, file)
  const [name = ""] = pointer.split("#")
  const { schema: inner, file: innerFile } = resolved({ schema: pointed(pointer), file: name })
  const { $ref: _, ...own } = schema
  return { schema: { ...inner, ...own }, file: innerFile, pointer }
}

const code = (value: unknown): string => `\`${typeof value === "string" ? value : JSON.stringify(value)}\``
const typeOf = ({ schema, file, pointer }: Placed): string => {
  const block = shared.find(([, to]) => to === pointer)
  if (block !== undefined) return block[2]
  if (schema.const !== undefined) return code(schema.const)
  if (schema.enum !== undefined) return schema.enum.map(code).join(", ")
  const choices = schema.anyOf
  if (choices !== undefined)
    return [...new Set(choices.map((each) => typeOf(resolved({ schema: each, file }))))].join(" or ")
  if (schema.type === "array") {
    if (schema.items === undefined) return "list"
    const item = typeOf(resolved({ schema: schema.items, file }))
    return item.startsWith("`") ? `list of ${item}` : item === "object" ? "list of objects" : `list of ${item}`
  }
  return schema.type ?? (schema.properties === undefined ? "anything" : "object")
}

const rowsOf = (at: { schema: Schema; file: string }, above: string, skip: ReadonlySet<string>): readonly Row[] => {
  const { schema, file } = resolved(at)
  const rows: Row[] = []
  const variants = schema.oneOf ?? []
  const told = new Set<string>()
  const add = (name: string, property: Schema, required: boolean): void => {
    const path = above === "" ? name : `${above}.${name}`
    if (skip.has(path) || told.has(path)) return
    told.add(path)
    const place = resolved({ schema: property, file })
    const isBlock = shared.some(([, to]) => to === place.pointer)
    rows.push({ path, type: typeOf(place), required, meaning: property.description ?? place.schema.description ?? "" })
    if (isBlock) return
    rows.push(...below(place, path))
  }
  for (const [name, property] of Object.entries(schema.properties ?? {}))
    add(name, property, schema.required?.includes(name) ?? false)
  for (const variant of variants)
    for (const [name, property] of Object.entries(variant.properties ?? {}))
      if (property.const === undefined || !told.has(above === "" ? name : `${above}.${name}`))
        add(
          name,
          property,
          (schema.required ?? []).includes(name) || (variants.length === 1 && (variant.required ?? []).includes(name)),
        )
  return rows

  function below(place: Placed, path: string): readonly Row[] {
    const { schema: inner } = place
    if (inner.items !== undefined) {
      const item = resolved({ schema: inner.items, file: place.file })
      return rowsOf({ schema: item.schema, file: item.file }, `${path}[]`, skip)
    }
    if (inner.properties !== undefined || inner.oneOf !== undefined)
      return rowsOf({ schema: inner, file: place.file }, path, skip)
    if (typeof inner.additionalProperties === "object" && inner.additionalProperties.properties !== undefined)
      return rowsOf({ schema: inner.additionalProperties, file: place.file }, `${path}.NAME`, skip)
    return []
  }
}

const cell = (text: string): string => text.replaceAll("|", "\\|")
const table = (rows: readonly Row[]): readonly string[] => {
  const silent = rows.filter((row) => row.meaning === "")
  if (silent.length > 0) throw new Error(`no schema says what these mean: ${silent.map((row) => row.path).join(", ")}`)
  return [
    "| field | what it is | |",
    "|---|---|---|",
    ...rows.map(
      (row) => `| \`${row.path}\`${row.required ? " **needed**" : ""} | ${cell(row.type)} | ${cell(row.meaning)} |`,
    ),
  ]
}

export const manifestReference = (): string => {
  const lines: string[] = []
  for (const [heading, name, above] of manifests) {
    const skip = new Set(
      above === undefined ? [] : rowsOf({ schema: fileOf(above), file: above }, "", new Set()).map((row) => row.path),
    )
    const own = rowsOf({ schema: fileOf(name), file: name }, "", new Set())
    lines.push(`### ${heading}`, "", ...table(own.filter((row) => !skip.has(row.path))), "")
  }
  for (const [heading, pointer] of shared) {
    const [file = ""] = pointer.split("#")
    const schema = pointed(pointer)
    const at =
      schema.type === "array" && schema.items !== undefined
        ? resolved({ schema: schema.items, file })
        : { schema, file }
    lines.push(`### ${heading}`, "", ...table(rowsOf(at, "", new Set())), "")
  }
  return lines.join("\n").trimEnd()
}

const BEGIN = "<!-- fields: npm run manifest-reference -->"
const END = "<!-- fields end -->"
export const withReference = (text: string, reference: string): string => {
  const [before, rest = ""] = text.split(BEGIN)
  const after = rest.split(END)[1]
  if (after === undefined) throw new Error(`docs/manifests.md has no ${BEGIN} … ${END}`)
  return `${before}${BEGIN}\n\n${reference}\n\n${END}${after}`
}

if (import.meta.main) {
  const file = join(root, "docs/manifests.md")
  writeFileSync(file, withReference(readFileSync(file, "utf8"), manifestReference()))
}
