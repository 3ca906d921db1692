/** A module that was found, with what runs it and what it must be shown. Types alone. */
import type { Interpreter } from "./interpreter.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { ModuleAnswer } from "./run-in-module.ts"
import type { ModuleSpec } from "./request.ts"

/** Functions that a driver's own module holds, by name. */
export interface OwnFunctions {
  readonly names: readonly string[]
  /** keys of `execute`: tools */
  readonly execute: readonly string[]
  /** where it contradicts its manifest, which holds */
  readonly notes: readonly string[]
  /** What transforms of these names make of values, in one sandbox without network, secrets or workspace. */
  transform(values: readonly (readonly [name: string, value: JsonValue])[], signal?: AbortSignal): Promise<ModuleAnswer>
  /** One of them, called in a sandbox without network, secrets or workspace. */
  call(name: string, args: readonly JsonValue[], signal?: AbortSignal): Promise<ModuleAnswer>
}

export interface FoundModule {
  readonly module: ModuleSpec
  readonly interpreter: Interpreter
  /** host path → path inside, the interpreter's own left out */
  readonly bundles: Readonly<Record<string, string>>
  /** programs of the system that it may start: name → host path */
  readonly programs?: Readonly<Record<string, string>>
  /** what it needs to find its packages */
  readonly env?: Readonly<Record<string, string>>
  /** changes when the module does */
  readonly edition: string
  /** the image that it runs on the root of, by its digest (AIP-17) */
  readonly image?: string
  /** digest of the bundle that it was composed into (AIP-26) */
  readonly composed?: string
  /** of its package, where that is known */
  readonly version?: string
  /** it is a driver's own, and was looked into */
  readonly own?: OwnFunctions
  /** what is asked before and after each call of it */
  readonly hooks?: Hooks
}

/** What the operator's hooks say to one event of a call. */
export type HookVerdict =
  | { readonly blocked: false; readonly data: JsonObject }
  | { readonly blocked: true; readonly hook: string; readonly message: string; readonly details: JsonObject }
/** Asks them one after the other, each in a sandbox of its own; one that fails blocks. */
export type Hooks = (event: string, data: JsonObject, signal?: AbortSignal) => Promise<HookVerdict>
