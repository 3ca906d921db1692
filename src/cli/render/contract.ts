/** One tool or driver in full, for people: rows of name and text. Pure. */
import { FS_ROOT_INPUT } from "../../manifest/contracts/file-contract.ts"
import type { ToldDriver, ToldTool } from "../../host/questions/told.ts"
import type { JsonObject, JsonSchema } from "../../manifest/types.ts"
import { typedAgain } from "../typed-again.ts"
import { inline } from "../visible.ts"

type Row = readonly [string, string]

const words = (items: readonly string[], none: string): string =>
  items.length === 0 ? none : items.map((item) => inline(item)).join(", ")

const typeText = (schema: JsonObject): string => {
  const { type, enum: choices } = schema
  if (Array.isArray(choices)) return choices.map((choice) => JSON.stringify(choice)).join(" | ")
  return Array.isArray(type) ? type.join(" | ") : typeof type === "string" ? type : "any"
}

/** A line an input: name, type, whether it must be there, what it is. */
const inputLines = (schema: JsonSchema): string => {
  const { properties, required } = schema as { properties?: Record<string, JsonObject>; required?: string[] }
  const names = Object.keys(properties ?? {}).filter((name) => name !== FS_ROOT_INPUT)
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

/** A line a file: its key, its place in the workspace, what it is. */
const fileRows = (title: string, files: ToldTool["inputsFiles"] = {}): readonly Row[] => {
  const lines = Object.entries(files).map(([key, { path, contentType, mode }]) =>
    inline(`${key}: ${path} (${[...(contentType === undefined ? [] : [contentType]), mode].join(", ")})`),
  )
  return lines.length === 0 ? [] : [[title, lines.join("\n")]]
}

/** A command that a person can type, from the first example of the contract. */
const exampleText = ({ id, examples, mutates }: ToldTool, manifests: readonly string[] | undefined): string => {
  const [first] = examples
  if (first === undefined) return "none"
  const json = JSON.stringify(first.input).replaceAll("'", "'\\''")
  return inline(typedAgain(`caisson call ${id}${mutates.length === 0 ? "" : " --plan"} -i '${json}'`, manifests))
}

/** `manifests`: the folders that the tool was found with. */
export const toolRows = (tool: ToldTool, manifests?: readonly string[]): readonly Row[] => [
  ["name", inline(tool.name)],
  ["about", inline(tool.description)],
  ["inputs", inputLines(tool.inputs)],
  ...fileRows("takes files", tool.inputsFiles),
  ...fileRows("gives files", tool.outputsFiles),
  ["answers", inline(typeText(tool.outputs as JsonObject))],
  ["mutates", words(tool.mutates, "nothing")],
  ["approval", `${inline(tool.approval)}, risk ${tool.risk_level}`],
  ["time", `${tool.timeout_ms / 1000} s at most`],
  ["example", exampleText(tool, manifests)],
  ["file", inline(tool.file ?? "not told")],
]

export const driverRows = (driver: ToldDriver): readonly Row[] => [
  ["name", inline(driver.name)],
  ["about", inline(driver.description)],
  ["kind", driver.kind],
  ["serves", words(driver.implements, "nothing")],
  ["egress", words(driver.egress, "none")],
  ["region", driver.region_declared ? words(driver.region, "none") : "not declared"],
  ["tags", words(driver.policy_tags, "none")],
  ["file", inline(driver.file ?? "not told")],
]
