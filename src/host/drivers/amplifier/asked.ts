/**
 * What the shim for Amplifier's modules is asked, and the files that it is made of.
 *
 * Guarantees: the module is loaded by the shim, which is loaded by the runner, in the process inside and nowhere else.
 */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import { isObject } from "../../invoke/schema-path.ts"
import type { ModuleSpec, RunnerRequest } from "../runner/request.ts"

const FOLDER = "/run/caisson"
const NAMES = ["amplifier.py", "amplifier_core.py"] as const

let files: Readonly<Record<string, Uint8Array>> | undefined

/** The shim as files of the job. */
export const amplifierFiles = (): Readonly<Record<string, Uint8Array>> =>
  (files ??= Object.fromEntries(
    NAMES.map((name) => [
      `${FOLDER}/${name}`,
      readFileSync(fileURLToPath(new URL(`../../../runner/${name}`, import.meta.url))),
    ]),
  ))

type Asked =
  | { readonly ask: "discover" }
  | { readonly ask: "call"; readonly tool: string; readonly input: JsonObject; readonly most: number }
  | { readonly ask: "hook"; readonly event: string; readonly data: JsonObject }

/** The config with its secrets: `${secrets.NAME}` in any of its texts; one without a value is nothing. */
export const withSecrets = (config: JsonObject, valueOf: (name: string) => string | undefined): JsonObject => {
  const filled = (value: JsonValue): JsonValue => {
    if (typeof value === "string")
      return value.replace(/\$\{secrets\.([A-Za-z_][A-Za-z0-9_]*)\}/g, (_, name: string) => valueOf(name) ?? "")
    if (Array.isArray(value)) return (value as readonly JsonValue[]).map(filled)
    return isObject(value) ? withSecrets(value, valueOf) : value
  }
  return Object.fromEntries(Object.entries(config).map(([key, value]) => [key, filled(value)]))
}

export const amplifierRequest = (
  module: ModuleSpec,
  config: JsonObject,
  { ask, ...asked }: Asked,
  marks: Readonly<Record<string, string>> = {},
): RunnerRequest => ({
  do: "call",
  module: { path: `${FOLDER}/amplifier.py` },
  ref: [ask],
  args: [{ module, config, ...asked }],
  marks,
})
