/**
 * What somebody who begins a tool and a driver is asked, and what of their answers can be used.
 *
 * Guarantees: pure. Each answer is judged by itself, with what to write instead; what the manifests as a whole do not allow is
 * found by validating them.
 */
import { isWritable } from "../text/front.ts"

export const scaffoldKinds = ["cli", "http", "sdk", "mcp", "builtin"] as const
export type ScaffoldKind = (typeof scaffoldKinds)[number]

export interface ScaffoldAnswers {
  readonly kind: ScaffoldKind
  /** the tool's id */
  readonly tool: string
  readonly driver: string
  readonly description: string
  /** cli: a program of this machine and its arguments, with `${input.name}` in them; none: a script that comes along */
  readonly command: readonly string[]
  /** http: where requests go, with `${input.name}` behind the host; mcp: a remote server */
  readonly url?: string
  readonly method?: "GET" | "POST" | "PUT" | "PATCH" | "DELETE"
  /** sdk */
  readonly language?: "node" | "python"
  /** mcp: `NAME@VERSION` of npm, and which of its tools */
  readonly package?: string
  readonly serverTool?: string
  /** `name:type` */
  readonly inputs: readonly string[]
  readonly write: readonly string[]
  readonly hosts: readonly string[]
  readonly spawn: readonly string[]
  readonly output: "text" | "json"
}

export const inputTypes = ["text", "path", "integer", "number", "boolean", "any"] as const
type InputType = (typeof inputTypes)[number]
export interface ScaffoldInput {
  readonly name: string
  readonly type: InputType
}

const TOOL_ID = /^[a-z0-9][a-z0-9.-]{0,78}[a-z0-9]$/
const DRIVER_ID = /^[a-z0-9][a-z0-9-]{1,62}$/
const INPUT = /^[A-Za-z_][A-Za-z0-9_]{0,63}$/
const TEMPLATE = /\$\{\s*input\.([A-Za-z_][A-Za-z0-9_]{0,63})\b/g

/** Why it cannot be used, with what to write; undefined where it can. */
export const faultOfTool = (id: string): string | undefined =>
  TOOL_ID.test(id) ? undefined : "a tool's id has lower case letters, digits, dots and hyphens, as in `notes.append`"

export const faultOfDriver = (id: string): string | undefined =>
  DRIVER_ID.test(id)
    ? undefined
    : "a driver's id has 2 to 63 lower case letters, digits and hyphens, as in `acme-notes`"

export const faultOfUrl = (text: string): string | undefined =>
  /^https?:\/\/[A-Za-z0-9.-]+(?::\d{1,5})?(?:\/\S*)?$/.test(text) && isWritable(text)
    ? undefined
    : "write an address such as `https://api.example.com/v1/items/${input.id}`; its host is fixed"

export const driverFrom = (tool: string): string =>
  tool
    .replaceAll(".", "-")
    .replace(/^-+|-+$/g, "")
    .slice(0, 63)

const typeOf = (name: string): InputType => (/(?:^|_)(?:file|path|folder|dir)$/i.test(name) ? "path" : "text")

/** Those that templates name, in their order, then those that were named; each once, of the type that was said. */
export const inputsOf = ({ command, url, inputs }: ScaffoldAnswers): readonly ScaffoldInput[] => {
  const said = new Map(
    inputs.map((each) => {
      const [name = "", type] = each.split(":", 2)
      return [name, (type ?? typeOf(name)) as InputType] as const
    }),
  )
  const named = [...command, url ?? ""].flatMap((text) => [...text.matchAll(TEMPLATE)].map((match) => match[1] ?? ""))
  return [...new Set([...named, ...said.keys()])].map((name) => ({ name, type: said.get(name) ?? typeOf(name) }))
}

const usedIn = (texts: readonly string[]): ReadonlySet<string> =>
  new Set(texts.flatMap((text) => [...text.matchAll(TEMPLATE)].map((match) => match[1] ?? "")))

/** Of the inputs that were declared, those that the command or the address does not hand on. */
const unusedInputs = ({ kind, command, url, inputs }: ScaffoldAnswers): readonly string[] => {
  const template = kind === "cli" ? command : kind === "http" ? [url ?? ""] : []
  if (template.join("") === "") return []
  const used = usedIn(template)
  return [...new Set(inputs.map((each) => each.split(":", 1)[0] ?? ""))].filter(
    (name) => INPUT.test(name) && !used.has(name),
  )
}

/** What is said of them, with what to write; undefined where there are none. */
export const wordsOfUnused = (answers: ScaffoldAnswers): string | undefined => {
  const idle = unusedInputs(answers)
  if (idle.length === 0) return undefined
  const { kind, command, url = "" } = answers
  const names = idle.map((name) => `\`${name}\``).join(", ")
  const words = idle.map((name) => (kind === "cli" ? `'\${input.${name}}'` : `${name}=\${input.${name}}`))
  return kind === "cli"
    ? `the command does not use ${names}: write where each value goes, as in \`-- ${command.join(" ")} ${words.join(" ")}\``
    : `the address does not use ${names}: write where each value goes, as in \`--url '${url}${url.includes("?") ? "&" : "?"}${words.join("&")}'\``
}

/** Where one of several is used, the others may go where only a manifest can say: to stdin, into a body. */
const unused = (answers: ScaffoldAnswers): string | undefined =>
  usedIn([...answers.command, answers.url ?? ""]).size > 0 ? undefined : wordsOfUnused(answers)

/** Everything that cannot be used, each a sentence with its fix. */
export const faultsOf = (answers: ScaffoldAnswers): readonly string[] => {
  const { kind, tool, driver, description, command, url, inputs, write, hosts, spawn } = answers
  const faults: (string | undefined)[] = [faultOfTool(tool), faultOfDriver(driver)]
  if (description.trim() === "" || !isWritable(description))
    faults.push("the description is one line of plain text that says what the tool does")
  for (const each of inputs) {
    const [name = "", type] = each.split(":", 2)
    if (!INPUT.test(name)) faults.push("an input is NAME or NAME:TYPE, as in `file:path`")
    if (type !== undefined && !(inputTypes as readonly string[]).includes(type))
      faults.push(`an input's type is one of ${inputTypes.join(", ")}`)
  }
  for (const text of [...command, ...write, ...hosts, ...spawn])
    if (!isWritable(text)) faults.push("arguments, paths and names have no control or invisible characters")
  faults.push(unused(answers))
  if (kind !== "cli" && command.length > 0) faults.push("a command after `--` is for `--kind cli`")
  if (kind === "http" && url === undefined) faults.push("`--kind http` needs `--url`, the address that is asked")
  if (url !== undefined && kind !== "http" && kind !== "mcp")
    faults.push("`--url` is for `--kind http` and `--kind mcp`")
  if (url !== undefined) faults.push(faultOfUrl(url))
  if (answers.package !== undefined && kind !== "mcp") faults.push("`--package` is for `--kind mcp`")
  if (answers.package !== undefined && url !== undefined) faults.push("a server is one of `--url` and `--package`")
  if (kind === "mcp" && (answers.package ?? url) !== undefined && answers.serverTool === undefined)
    faults.push("name the server's tool that is called: `--server-tool NAME`")
  if (spawn.length > 0 && kind !== "cli") faults.push("`--exec` is for `--kind cli`")
  return [...new Set(faults.filter((fault) => fault !== undefined))]
}
