/**
 * Tools that a module of Amplifier's mounts → contracts and a driver, as if they had been written by hand.
 *
 * Guarantees: a module's word is a name, a description and a schema, and no more; everything else is the operator's
 * (`amplifier` in caisson.yaml) or closed: nothing is changed, reached or started, and a person approves every call.
 * They are read and checked as any manifest is. Pure.
 */
import { basename } from "node:path"
import type { AmplifierModule, AmplifierToolSettings } from "../config/amplifier-settings.ts"
import type { MountedTool } from "../drivers/amplifier/discover.ts"
import { joinPath, shown } from "../../manifest/values/diagnostics.ts"
import type { DefinedManifest } from "../../manifest/read/defined.ts"
import { loadFront } from "../../manifest/read/load.ts"
import type { Diagnostic, JsonObject } from "../../manifest/types.ts"

export interface Placed {
  readonly module: AmplifierModule
  /** in the list of them */
  readonly index: number
  /** the config file; what its diagnostics name */
  readonly file: string
}

interface MadeManifests {
  readonly manifests: readonly DefinedManifest[]
  readonly diagnostics: readonly Diagnostic[]
}

/** `Read_File` → `read-file`: the ids of contracts have no underscores. */
const idFor = (name: string): string =>
  name
    .toLowerCase()
    .replace(/[^a-z0-9.-]+/g, "-")
    .replace(/^[.-]+|[.-]+$/g, "")
    .slice(0, 80)
    .replace(/[.-]+$/, "")

const isToolId = (id: string): boolean => /^[a-z0-9][a-z0-9.-]*[a-z0-9]$/.test(id)

const stemOf = ({ path }: AmplifierModule): string => basename(path).replace(/\.py$/, "")
export const driverIdOf = (module: AmplifierModule): string =>
  module.id ?? `amplifier-${idFor(stemOf(module))}`.slice(0, 80).replace(/[.-]+$/, "")

const settingsFor = ({ tools = {} }: AmplifierModule, name: string): AmplifierToolSettings | undefined =>
  Object.hasOwn(tools, name) ? tools[name] : undefined

/** Its operator said what it changes, be it nothing. */
const isAnnotated = (settings: AmplifierToolSettings | undefined): boolean => settings?.mutates !== undefined

const OPEN: JsonObject = { type: "object" }
const OUTPUTS: JsonObject = {
  type: "object",
  properties: { output: {}, metadata: { type: "object" } },
  required: ["output"],
}

const inputsOf = ({ schema }: MountedTool): JsonObject =>
  schema === undefined ? OPEN : schema["type"] === undefined ? { ...schema, type: "object" } : schema

const toolFront = (module: AmplifierModule, tool: MountedTool, id: string): JsonObject => {
  const settings = settingsFor(module, tool.name)
  const { mutates = [], approval, risk_level: risk, idempotent, timeout_ms: timeout } = settings ?? {}
  const isOpen = isAnnotated(settings)
  return {
    id,
    name: tool.name.slice(0, 80),
    description: tool.description === "" ? `\`${tool.name}\` of ${basename(module.path)}` : tool.description,
    version: settings?.version ?? (isOpen ? "1.0.0" : "0.0.0"),
    inputs: inputsOf(tool),
    outputs: OUTPUTS,
    mutates: [...mutates],
    approval: approval ?? (isOpen ? (mutates.length > 0 ? "on-mutate" : "auto") : "always"),
    risk_level: risk ?? (isOpen ? (mutates.length > 0 ? 1 : 0) : 2),
    ...(idempotent === undefined ? {} : { idempotent }),
    ...(timeout === undefined ? {} : { timeout_ms: timeout }),
    tags: ["amplifier"],
    metadata: { amplifier: { name: tool.name, module: basename(module.path) } },
  }
}

const driverFront = (
  module: AmplifierModule,
  served: readonly { readonly tool: MountedTool; readonly front: JsonObject }[],
): JsonObject => {
  const { config = {}, egress = [], exec = [], secrets = [], output_chars: chars, debug } = module
  const isOpen = egress.length + exec.length + secrets.length > 0
  return {
    id: driverIdOf(module),
    name: stemOf(module).slice(0, 80),
    description: `The tools of ${basename(module.path)}, a module of Amplifier's`.slice(0, 2000),
    version: module.version ?? (isOpen ? "1.0.0" : "0.0.0"),
    kind: "sdk",
    package: basename(module.path),
    package_manager: "local",
    import_style: "python",
    amplifier: {
      config,
      ...(chars === undefined ? {} : { output_chars: chars }),
      ...(debug === undefined ? {} : { debug }),
    },
    runner: { engine: "subprocess", needs: { language: "python", native: [...exec] } },
    network: { egress: [...egress] },
    ...(secrets.length === 0 ? {} : { auth: { state: { env: [...secrets], paths: [] } } }),
    implements: served.map(({ tool, front }) => ({
      tool: front["id"] ?? "",
      version: front["version"] ?? "",
      metadata: { sdk: { function_ref: "mount", amplifier_tool: tool.name } },
    })),
  }
}

const closedNote = ({ index, file }: Placed, tool: MountedTool, id: string): Diagnostic => {
  const at = joinPath(`amplifier[${index}].tools`, tool.name)
  return {
    severity: "warning",
    rule: "amplifier-closed",
    file,
    path: at,
    message: `nobody says what \`${shown(tool.name, 80)}\` changes or reaches, so ${id} changes nothing, reaches no host, starts no program, and a person approves every call of it`,
    fix: `say it: \`mutates: ["workspace:**"]\` (or \`mutates: []\`) at ${at}, hosts in \`amplifier[${index}].egress\`, programs in \`amplifier[${index}].exec\``,
  }
}

const openSchema = ({ index, file }: Placed, { name }: MountedTool): Diagnostic => ({
  severity: "warning",
  rule: "amplifier-no-schema",
  file,
  path: joinPath(`amplifier[${index}].tools`, name),
  message: `\`${shown(name, 80)}\` has no \`input_schema\`: any input is passed on to it`,
  fix: "give the tool an `input_schema` in its module",
})

/** `taken`: ids of tools that modules before this one mount. */
export const manifestsOf = (placed: Placed, tools: readonly MountedTool[], taken: Set<string>): MadeManifests => {
  const { module, index, file } = placed
  const diagnostics: Diagnostic[] = []
  const served = tools.flatMap((tool) => {
    const settings = settingsFor(module, tool.name)
    const id = settings?.id ?? idFor(tool.name)
    const at = joinPath(`amplifier[${index}].tools`, tool.name)
    if (!isToolId(id) || taken.has(id)) {
      diagnostics.push({
        severity: "error",
        rule: "amplifier-id",
        file,
        path: at,
        message: taken.has(id)
          ? `another tool of \`amplifier\` is ${id} already`
          : `no id of a contract can be made of the name \`${shown(tool.name, 80)}\``,
        fix: `write \`${at}: { id: some-id }\``,
      })
      return []
    }
    taken.add(id)
    if (!isAnnotated(settings)) diagnostics.push(closedNote(placed, tool, id))
    if (tool.schema === undefined) diagnostics.push(openSchema(placed, tool))
    return [{ tool, front: toolFront(module, tool, id) }]
  })
  for (const name of Object.keys(module.tools ?? {}).filter((each) => !tools.some((tool) => tool.name === each)))
    diagnostics.push({
      severity: "warning",
      rule: "amplifier-no-tool",
      file,
      path: joinPath(`amplifier[${index}].tools`, name),
      message: `the module mounts no tool \`${shown(name, 80)}\``,
      fix: `it mounts ${tools.map((tool) => `\`${shown(tool.name, 40)}\``).join(", ") || "none"}`,
    })
  // Beside the module, where its package is looked for.
  const place = (what: string): string => `${module.path}#${what}`
  const contracts = served.map(({ tool, front }): DefinedManifest => {
    const file = place(`tools.${encodeURIComponent(tool.name)}`)
    return { doctype: "tool", file, front }
  })
  // One that is refused, for its schema or for an annotation, leaves the others standing.
  const good = served.filter((_, index) => {
    const { file: at = "", front = {} } = contracts[index] ?? {}
    return loadFront(at, "tool", front, "compat").result.ok
  })
  if (good.length === 0) return { manifests: contracts, diagnostics }
  const driver: DefinedManifest = { doctype: "driver", file: place("mount"), front: driverFront(module, good) }
  return { manifests: [...contracts, driver], diagnostics }
}
