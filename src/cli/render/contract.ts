/** One tool or driver in full, for people: rows of name and text. Pure. */
import { declaredKind } from "../../manifest/kinds/body.ts"
import type { DriverContract, JsonObject, JsonSchema, ToolContract } from "../../manifest/types.ts"
import { inline } from "../visible.ts"

type Row = readonly [string, string]

const words = (items: readonly string[], none: string): string =>
  items.length === 0 ? none : items.map((item) => inline(item)).join(", ")

export const approvalText = ({ approval }: Pick<ToolContract, "approval">): string =>
  approval.class === "policy" ? `policy:${approval.ref}` : approval.class

const typeText = (schema: JsonObject): string => {
  const { type, enum: choices } = schema
  if (Array.isArray(choices)) return choices.map((choice) => JSON.stringify(choice)).join(" | ")
  return Array.isArray(type) ? type.join(" | ") : typeof type === "string" ? type : "any"
}

/** A line an input: name, type, whether it must be there, what it is. */
const inputLines = (schema: JsonSchema): string => {
  const { properties, required } = schema as { properties?: Record<string, JsonObject>; required?: string[] }
  const names = Object.keys(properties ?? {})
  if (names.length === 0) return "none named"
  return names
    .map((name) => {
      const property = properties?.[name] ?? {}
      const need = required?.includes(name) === true ? "" : ", optional"
      const about = typeof property["description"] === "string" ? `: ${property["description"]}` : ""
      return inline(`${name} (${typeText(property)}${need})${about}`)
    })
    .join("\n")
}

/** A command that a person can type, from the first example of the contract. */
const exampleText = ({ id, examples, mutates }: ToolContract): string => {
  const [first] = examples
  if (first === undefined) return "none"
  const json = JSON.stringify(first.input).replaceAll("'", "'\\''")
  return inline(`caisson call ${id}${mutates.length === 0 ? "" : " --plan"} -i '${json}'`)
}

export const toolRows = (tool: ToolContract): readonly Row[] => [
  ["name", inline(tool.name)],
  ["about", inline(tool.description)],
  ["inputs", inputLines(tool.inputs)],
  ["answers", inline(typeText(tool.outputs as JsonObject))],
  [
    "mutates",
    words(
      tool.mutates.map((scope) => scope.text),
      "nothing",
    ),
  ],
  ["approval", `${inline(approvalText(tool))}, risk ${tool.riskLevel}`],
  ["time", `${tool.timeoutMs / 1000} s at most`],
  ["example", exampleText(tool)],
  ["file", inline(tool.source.file)],
]

export const driverRows = (driver: DriverContract): readonly Row[] => [
  ["name", inline(driver.name)],
  ["about", inline(driver.description)],
  ["kind", declaredKind(driver)],
  [
    "serves",
    words(
      driver.implements.map((entry) => entry.tool),
      "nothing",
    ),
  ],
  [
    "egress",
    words(
      driver.egress.map((entry) => entry.text),
      "none",
    ),
  ],
  ["region", driver.regionDeclared ? words(driver.region, "none") : "not declared"],
  ["tags", words(driver.policyTags, "none")],
  ["file", inline(driver.source.file)],
]
