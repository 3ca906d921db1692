/**
 * `defineTool`, `defineDriver`, `defineCli`, …: the same contracts from plain objects in code.
 *
 * Guarantees: the object goes through the same checks as a manifest's front matter, in strict mode; no I/O beyond our
 * own schemas; the result is frozen. A refused definition throws `ManifestError`, which lists every diagnostic.
 */
import { jcs } from "./values/digest.ts"
import { loadFront } from "./read/load.ts"
import { limits } from "./limits.ts"
import type {
  ActionContract,
  Diagnostic,
  DriverContract,
  JsonObject,
  Manifest,
  ManifestKind,
  PolicyContract,
  SecretsInventory,
  ToolContract,
} from "./types.ts"

export class ManifestError extends Error {
  readonly code = "manifest_invalid"
  readonly diagnostics: readonly Diagnostic[]
  constructor(what: string, diagnostics: readonly Diagnostic[]) {
    super(
      `${what}: ${diagnostics
        .filter((d) => d.severity === "error")
        .map((d) => `${d.path === "" ? "" : `${d.path}: `}${d.message} (${d.fix})`)
        .join("; ")}`,
    )
    this.name = "ManifestError"
    this.diagnostics = diagnostics
  }
}

export interface DefineOptions {
  /** shown in diagnostics; default `<code>` */
  readonly file?: string
}

function define(kind: ManifestKind, what: string, definition: object, options: DefineOptions): Manifest {
  const file = options.file ?? "<code>"
  const fault = (message: string): never => {
    throw new ManifestError(what, [
      { severity: "error", rule: "not-json", file, path: "", message, fix: "pass a plain object of JSON values" },
    ])
  }
  let text: string
  try {
    text = jcs(definition)
  } catch (error) {
    return fault(error instanceof Error ? error.message : String(error))
  }
  if (text.length > limits.frontmatterBytes * 4) return fault("the definition is too large")
  if (/"(?:__proto__|constructor|prototype)":/.test(text))
    return fault("the keys `__proto__`, `constructor` and `prototype` are not allowed")
  const { result } = loadFront(file, kind, JSON.parse(text) as JsonObject, "strict")
  if (!result.ok) throw new ManifestError(what, result.diagnostics)
  return result.manifest
}

export const defineTool = (definition: object, options: DefineOptions = {}): ToolContract =>
  define("tool", "defineTool", definition, options) as ToolContract
export const defineDriver = (definition: object, options: DefineOptions = {}): DriverContract =>
  define("driver", "defineDriver", definition, options) as DriverContract
export const defineCli = (definition: object, options: DefineOptions = {}): DriverContract =>
  define("cli", "defineCli", definition, options) as DriverContract
export const defineSecret = (definition: object, options: DefineOptions = {}): SecretsInventory =>
  define("secrets", "defineSecret", definition, options) as SecretsInventory
export const defineAction = (definition: object, options: DefineOptions = {}): ActionContract =>
  define("action", "defineAction", definition, options) as ActionContract
export const definePolicy = (definition: object, options: DefineOptions = {}): PolicyContract =>
  define("policy", "definePolicy", definition, options) as PolicyContract
