/**
 * A driver's own module: where it is, and what it holds.
 *
 * Guarantees: it is the file that was registered, to the byte, with the files of its folder that it names; it is loaded
 * in a sandbox without network, secrets or workspace, once for each edition, and what it says of itself is data.
 * Functions for other tools than those of `implements`, or for fewer, are `execute_binding_mismatch`; what contradicts
 * the manifest is noted, and the manifest holds (AIP-30 rule 2). What this host never calls for a driver is refused by
 * its name.
 */
import { basename, dirname, join } from "node:path"
import { pathToFileURL } from "node:url"
import { checkExecuteKeys } from "../../../manifest/contracts/binding.ts"
import { moduleDigest } from "../../../manifest/read/module-digest.ts"
import { ADAPTERS } from "../../../manifest/driver-code.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { DriverCode, DriverContract, JsonObject, JsonValue } from "../../../manifest/types.ts"
import { hostLimits } from "../../limits.ts"
import { ownTransforms } from "../../invoke/mapping.ts"
import { isObject } from "../../invoke/schema-path.ts"
import type { DriverAvailability, Surroundings } from "../kind.ts"
import { inside } from "../paths.ts"
import type { FoundModule } from "../runner/found-module.ts"
import { findInterpreter } from "../runner/interpreter.ts"
import { ALIASES, DESCRIBER } from "./aliases.ts"

type Unavailable = Extract<DriverAvailability, { available: false }>
type Entry = { readonly ok: true; readonly module: FoundModule } | { readonly ok: false; readonly answer: Unavailable }

const refuse = (
  reason: string,
  fix: string,
  code: Unavailable["code"] = "tool_unavailable",
): { readonly ok: false; readonly answer: Unavailable } => ({
  ok: false,
  answer: { available: false, code, reason, fix },
})

interface Said {
  readonly functions: Readonly<Record<string, readonly string[]>>
  readonly data: JsonObject
}

const isNames = (value: JsonValue): boolean => Array.isArray(value) && value.every((each) => typeof each === "string")

/** What the module said of itself, where it has the form of that. */
const saidOf = (value: JsonValue): Said | undefined => {
  if (!isObject(value)) return undefined
  const { functions, data } = value
  if (!isObject(functions) || !isObject(data) || !Object.values(functions).every(isNames)) return undefined
  return { functions: functions as Said["functions"], data }
}

/** What an entry may repeat of its manifest, as code spells it. */
const REPEATED = ["id", "name", "description", "version"] as const

const contradictions = ({ data }: Said, driver: DriverContract): readonly string[] =>
  REPEATED.flatMap((field) =>
    data[field] === undefined || data[field] === driver[field]
      ? []
      : [
          `the module says \`${field}: ${shown(data[field], 60)}\`; the manifest's \`${shown(driver[field], 60)}\` holds`,
        ],
  )

const bindingFault = (driver: DriverContract, keys: readonly string[]): Entry | undefined => {
  const [first] = checkExecuteKeys(driver, keys)
  if (first === undefined) return undefined
  const reason =
    first.missing === "execute"
      ? `it implements \`${first.tool}\` and its module has no function for it in \`execute\``
      : `\`execute\` of its module has a function for \`${shown(first.tool)}\`, which it does not implement`
  return refuse(reason, "make the keys of `execute` equal to the tools in `implements`", "execute_binding_mismatch")
}

/** Functions that somebody counts on and that nobody calls. */
const uncalled = ({ functions }: Said): Entry | undefined => {
  const odd = Object.keys(functions).find(
    (name) => name !== "execute" && name !== "transforms" && !(ADAPTERS as readonly string[]).includes(name),
  )
  if (odd !== undefined)
    return refuse(
      `this host calls no function \`${shown(odd, 40)}\` of a driver's module`,
      `use one of ${ADAPTERS.join(", ")}, or do the work in \`execute\``,
    )
  return undefined
}

const missing = (
  { implements: entries }: DriverContract,
  code: DriverCode,
  { functions }: Said,
): string | undefined => {
  const { execute, adapters, transforms } = code
  const named = entries.flatMap(({ mapping }) => ownTransforms(mapping).map(({ transform }) => transform))
  const absent = [...transforms, ...named].find((name) => functions["transforms"]?.includes(name) !== true)
  if (absent !== undefined) return `transforms.${absent}`
  return [...(execute === undefined ? [] : ["execute"]), ...adapters].find((name) => !Object.hasOwn(functions, name))
}

/** Under way or settled, by host and edition; one that failed is asked again after a while. */
const looked = new WeakMap<Surroundings, Map<string, Promise<Entry>>>()

const look = async (
  driver: DriverContract,
  code: DriverCode,
  found: FoundModule,
  here: Surroundings,
): Promise<Entry> => {
  const { interpreter, bundles } = found
  const url = pathToFileURL(join(inside.bundle, basename(code.module ?? ""))).href
  const module = { name: DESCRIBER, from: inside.bundle, aliases: ALIASES }
  const answer = await here.runInModule({
    interpreter,
    bundles,
    request: { do: "call", module, ref: ["describe"], args: [url, code.export] },
  })
  if (!answer.ok) {
    if (answer.kind === "unsealed")
      return refuse(answer.message, answer.fix ?? "run `caisson doctor`", "sandbox_unavailable")
    const said =
      answer.kind === "thrown" ? `${answer.thrown.names[0] ?? "Error"}: ${answer.thrown.message}` : answer.message
    return refuse(
      `its module cannot be loaded: ${shown(said, 300)}`,
      "its module sees its own folder and Node, and nothing else when it is loaded",
    )
  }
  const said = saidOf(answer.value)
  if (said === undefined)
    return refuse(
      `the export \`${shown(code.export, 40)}\` of its module is no definition`,
      "write `export default defineDriver({ … })`",
      "function_ref_unresolvable",
    )
  const absent = missing(driver, code, said)
  if (absent !== undefined)
    return refuse(`there is no \`${shown(absent, 80)}\` in its module`, "define it there", "function_ref_unresolvable")
  const { execute } = said.functions
  const fault = uncalled(said) ?? (execute === undefined ? undefined : bindingFault(driver, execute))
  if (fault !== undefined) return fault
  const functions = Object.keys(said.functions)
  const own = {
    names: functions,
    execute: execute ?? [],
    notes: contradictions(said, driver),
    transform: (values: readonly (readonly [string, JsonValue])[], signal?: AbortSignal) =>
      here.runInModule(
        { interpreter, bundles, request: { do: "call", module, ref: ["transform"], args: [url, code.export, values] } },
        signal,
      ),
    call: (name: string, args: readonly JsonValue[], signal?: AbortSignal) =>
      here.runInModule(
        { interpreter, bundles, request: { do: "call", module: found.module, ref: [code.export, name], args } },
        signal,
      ),
  }
  return { ok: true, module: { ...found, own } }
}

/** The module that a driver's functions are in, looked into. */
export const findEntry = async (driver: DriverContract, here: Surroundings): Promise<Entry> => {
  const { code } = driver
  const file = code?.module
  if (code === undefined || file === undefined) throw new TypeError(`${driver.id} has no module of its own`)
  const read = moduleDigest(file)
  if (!read.ok || read.digest !== code.digest)
    return refuse(
      `its module ${file} ${read.ok ? "changed since it was registered, or a file that it names did" : read.why}`,
      "start the host again, which registers it anew",
    )
  const now = read.digest
  const folder = dirname(file)
  const interpreter = findInterpreter("node", [{ folder, inside: inside.bundle }], here)
  if (!interpreter.ok) return refuse(interpreter.reason, interpreter.fix)
  const found: FoundModule = {
    module: { path: join(inside.bundle, basename(file)), aliases: ALIASES },
    interpreter: interpreter.interpreter,
    bundles: { [folder]: inside.bundle },
    edition: now,
  }
  const key = JSON.stringify([driver.source.file, driver.source.digest, now, interpreter.interpreter.program])
  const mine = looked.get(here) ?? new Map<string, Promise<Entry>>()
  looked.set(here, mine)
  const known = mine.get(key)
  if (known !== undefined) return known
  const looking = look(driver, code, found, here)
  mine.set(key, looking)
  const forget = (): boolean => mine.delete(key)
  looking.then((entry) => {
    // A host of its own has sandboxes of its own; what a machine could not do now, it may do later.
    if (!entry.ok) setTimeout(forget, hostLimits.probeRetryMs.value).unref()
  }, forget)
  return looking
}
