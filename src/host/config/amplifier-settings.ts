/**
 * `amplifier` and `amplifier_hooks` of a config file: modules of Python whose tools this host offers, what the operator
 * says of them that they cannot say themselves, and modules that are asked before and after each of their calls. Pure.
 *
 * Guarantees: what is not annotated is closed: it mutates nothing, reaches no host, starts nothing, and a person approves
 * every call. Does not: look at the modules.
 */
import type { JsonObject } from "../../manifest/types.ts"

export interface AmplifierToolSettings {
  readonly id?: string
  readonly version?: string
  readonly mutates?: readonly string[]
  readonly approval?: string
  readonly risk_level?: number
  readonly idempotent?: boolean
  readonly timeout_ms?: number
}

export interface AmplifierSettings {
  readonly module: string
  readonly config?: JsonObject
  readonly id?: string
  readonly version?: string
  readonly egress?: readonly string[]
  readonly exec?: readonly string[]
  readonly secrets?: readonly string[]
  readonly output_chars?: number
  readonly debug?: boolean
  readonly tools?: Readonly<Record<string, AmplifierToolSettings>>
}

export interface AmplifierHookSettings {
  readonly module: string
  readonly config?: JsonObject
  readonly events?: readonly string[]
  readonly timeout_ms?: number
}

/** One module, its path absolute. */
export type AmplifierModule = AmplifierSettings & { readonly path: string }

export interface AmplifierHook {
  /** absolute */
  readonly module: string
  readonly config: JsonObject
  readonly events: readonly string[]
  readonly timeoutMs: number
}

const HOOK_MS = 5_000

export const amplifierOf = (
  written: readonly AmplifierSettings[],
  path: (value: string) => string,
): readonly AmplifierModule[] =>
  Object.freeze(written.map((each) => Object.freeze({ ...each, path: path(each.module) })))

export const amplifierHooksOf = (
  written: readonly AmplifierHookSettings[],
  path: (value: string) => string,
): readonly AmplifierHook[] =>
  Object.freeze(
    written.map(({ module, config = {}, events = ["tool:pre"], timeout_ms: timeoutMs = HOOK_MS }) =>
      Object.freeze({ module: path(module), config, events, timeoutMs }),
    ),
  )
