/**
 * `defineDriver` and `defineCli`: drivers from code (AIP-30, 29).
 *
 * Guarantees: data and functions are told apart here, once: the data is checked as a DRIVER.md or CLI.md, the functions
 * are kept by name only, to be imported from their module inside a sandbox. A function under a name that no signature
 * has is refused by that name. Where `execute` is there, it runs every tool, and the kind's own fields may be absent.
 */
import type { DriverContract } from "../manifest/types.ts"
import { type Adapter, ADAPTERS, type DriverCode } from "../manifest/driver-code.ts"
import { deepFreeze } from "../manifest/values/freeze.ts"
import { RETRY } from "./contracts.ts"
import { definer, type Definer, fault, frontOf, make, moduleOf } from "./made.ts"
import type { Keys } from "./spelling.ts"
import type { CliDefinition, DefineOptions, DriverDefinition, DriverHandle } from "./types.ts"

const COST: Keys = { cost_class: true, cost_units_per_call: true }
const COMPLETES: Keys = { exit_code: true, http: { expect_status: true } }
const SHARED: Keys = {
  install: { verify_sha256: true, extract_bin: true },
  version_check: { timeout_ms: true },
  setup: { skip_if: { exit_code: true, timeout_ms: true }, timeout_ms: true, secret_slug: true },
  auth: {
    login: { requires_callback_url: true, completes_when: COMPLETES },
  },
  output: { default_format: true, json_flag: true, json_flag_args: true, exit_codes: true, error_stream: true },
  bin_args: true,
  requires: { min_disk_mb: true, min_memory_mb: true },
}
const DRIVER: Keys = {
  ...SHARED,
  implements: {
    schema_narrowing: { drop_inputs: true, drop_outputs: true },
    cost_override: COST,
    timeout_override_ms: true,
    retry_override: RETRY,
  },
  driver_kind: true,
  policy_tags: true,
  cost_override: COST,
  timeout_override_ms: true,
  retry_override: RETRY,
  health_check: { expect_exit: true, timeout_ms: true, http: { expect_status: true } },
  base_url: true,
  default_headers: true,
  default_method: true,
  streaming: { event_field: true },
  rate_limit: { requests_per_minute: true },
  protocol_version: true,
  connection_options: { timeout_ms: true, max_retries: true },
  package_manager: true,
  package_version: true,
  import_style: true,
  client_options: true,
}

type Given = Readonly<Record<string, unknown>>

/** The names of the functions in a record of them. */
const functionsIn = (by: Definer, given: Given, key: string): readonly string[] => {
  const record = given[key]
  if (record === undefined) return []
  const entries = typeof record === "object" && record !== null ? Object.entries(record) : undefined
  if (entries === undefined || entries.some(([, value]) => typeof value !== "function"))
    throw fault(by, "not-a-function", key, `\`${key}\` is a record of functions`, `write \`${key}: { name: fn }\``)
  return entries.map(([name]) => name)
}

const codeOf = (by: Definer, given: Given, options: DefineOptions): DriverCode | undefined => {
  for (const [key, value] of Object.entries(given))
    if (typeof value === "function" && !ADAPTERS.includes(key as Adapter))
      throw fault(
        by,
        "unknown-function",
        key,
        `this host calls no function \`${key}\` of a driver`,
        `use one of ${ADAPTERS.join(", ")}, or do the work in \`execute\``,
      )
  const adapters = ADAPTERS.filter((name) => given[name] !== undefined)
  const odd = adapters.find((name) => typeof given[name] !== "function")
  if (odd !== undefined) throw fault(by, "not-a-function", odd, `\`${odd}\` is a function`, "write a function")
  const execute = functionsIn(by, given, "execute")
  const transforms = functionsIn(by, given, "transforms")
  if (given["execute"] === undefined && adapters.length + transforms.length === 0) return undefined
  const module = moduleOf(options)
  return deepFreeze({
    export: options.export ?? "default",
    adapters,
    transforms,
    ...(given["execute"] === undefined ? {} : { execute }),
    ...(module === undefined ? {} : { module }),
  })
}

/** A runner's handle is its fields; what a handle adds to the definition is left out. */
const plainRunner = (runner: unknown): unknown => {
  if (typeof runner !== "object" || runner === null || !("resolveForOrigin" in runner)) return runner
  const { engine, image, needs, limits } = runner as Given
  return { engine, ...(image === null ? {} : { image }), needs, limits }
}

const dataOf = (given: Given): object => ({
  version: "1.0.0",
  ...Object.fromEntries(
    Object.entries(given)
      .filter(
        ([key, value]) =>
          value !== undefined && typeof value !== "function" && !["execute", "transforms"].includes(key),
      )
      .map(([key, value]) => [key, key === "runner" ? plainRunner(value) : value]),
  ),
})

const defined = (
  by: Definer,
  doctype: "driver" | "cli",
  given: Given,
  keys: Keys,
  options: DefineOptions,
): DriverHandle => {
  const code = codeOf(by, given, options)
  const made = make<DriverContract>(by, doctype, frontOf(by, dataOf(given), keys), code)
  return Object.freeze({ ...made, doctype, id: made.contract.id })
}

export const defineDriver = (definition: DriverDefinition, options: DefineOptions = {}): DriverHandle => {
  const by = definer("defineDriver", "driver", definition.id, options)
  return defined(by, "driver", definition as unknown as Given, DRIVER, options)
}

/** `defineDriver({ kind: "cli", … })`, with the tools it serves read from its tree of commands. */
export const defineCli = (definition: CliDefinition, options: DefineOptions = {}): DriverHandle => {
  const by = definer("defineCli", "cli", definition.id, options)
  return defined(by, "cli", definition as unknown as Given, SHARED, options)
}
