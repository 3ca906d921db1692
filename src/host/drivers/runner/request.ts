/** What a shim is asked, as the frame has it; the shims in `src/runner` read these very names. Types and texts alone. */
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Waits } from "../../../sandbox/terms.ts"

export type RunnerLanguage = "node" | "python"

/** A module by its file or folder inside, or by its package's name as modules in a folder would import it. */
export type ModuleSpec = {
  readonly style?: "esm" | "cjs"
  /** Node: specifier → the address of what is loaded instead */
  readonly aliases?: { readonly [specifier: string]: string }
  /** Node: a folder whose packages are taken where the module's own folders have none */
  readonly also?: string
  /** Python: folders that modules are looked for in first */
  readonly paths?: readonly string[]
} & ({ readonly path: string } | { readonly name: string; readonly entry?: string; readonly from: string })

export type RunnerRequest = (
  | {
      readonly do: "call"
      readonly ref: readonly string[]
      /** what a class on the way to the function is made with */
      readonly client?: { readonly with?: JsonObject }
      readonly args: readonly JsonValue[]
      /** Python: arguments by name */
      readonly named?: JsonObject
      /** where in the arguments the signal of an early end is put in: an AbortSignal, or a threading.Event */
      readonly signals?: readonly (readonly (string | number)[])[]
      /** where in the arguments the function is put in by which other tools are asked for */
      readonly calls?: readonly (readonly (string | number)[])[]
      /** a further argument, which that function and the signal are put into: Node's last; in Python `ctx`, where it is taken */
      readonly context?: JsonObject
      readonly streaming?: "async-iterator" | "callback"
      /** a mark in the texts of arguments and client → the variable inside whose value stands there */
      readonly marks?: { readonly [mark: string]: string }
    }
  /** which of these functions are there? Answered by a list of null or what is wrong. */
  | { readonly do: "resolve"; readonly refs: readonly (readonly string[])[] }
  /** `{ type, keys: { name: type } }` of what the names lead to */
  | { readonly do: "inspect"; readonly ref: readonly string[] }
) & { readonly module: ModuleSpec }

const SHIMS: Readonly<Record<RunnerLanguage, string>> = { node: "run-node.mjs", python: "run-python.py" }

/** Where the shim is inside. */
const shimPath = (language: RunnerLanguage): string => `/run/caisson/${SHIMS[language]}`

const texts = new Map<string, Buffer>()
const textOf = (name: string): Buffer => {
  let text = texts.get(name)
  if (text === undefined) {
    text = readFileSync(fileURLToPath(new URL(`../../../runner/${name}`, import.meta.url)))
    texts.set(name, text)
  }
  return text
}

/** The shim as a file of the job. */
export const shimFiles = (language: RunnerLanguage): Readonly<Record<string, Uint8Array>> => ({
  [shimPath(language)]: textOf(SHIMS[language]),
})

/** What a shim is beside itself while it waits for its call with a module imported. */
const WAITERS: Readonly<Record<RunnerLanguage, string>> = { node: "wait-node.mjs", python: "wait_python.py" }

/** The same shim, started before there is a call: what it imports then, and what it needs to wait. */
export const shimWaits = (
  language: RunnerLanguage,
  interpreter: string,
  module: ModuleSpec,
): Pick<Waits, "argv" | "files"> => ({
  argv: [...shimArgv(language, interpreter), JSON.stringify(module)],
  files: Object.fromEntries(
    [SHIMS, WAITERS].map((names) => [`/run/caisson/${names[language]}`, textOf(names[language]).toString("utf8")]),
  ),
})

/** The command that runs the shim under an interpreter's path inside. */
export const shimArgv = (language: RunnerLanguage, interpreter: string): readonly string[] =>
  language === "node" ? [interpreter, shimPath(language)] : [interpreter, "-I", "-B", shimPath(language)]
