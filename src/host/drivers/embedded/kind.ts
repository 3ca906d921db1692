/**
 * Kind builtin (AIP-30), of a program that embeds the host: its own functions, called in this process.
 *
 * Guarantees: only functions that the program handed over when it made the host; no manifest can bring one. Every receipt
 * and every envelope of such a call says that it ran unsealed. It is handed its input and nothing of the workspace, so
 * that nothing is committed; what it does beside that nobody watches. Its value is judged like any other.
 */
import { jcs } from "../../../manifest/values/digest.ts"
import type { DriverContract, Implementation, JsonValue } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import type { DriverKindModule, KindCall } from "../kind.ts"
import type { BuiltinFunction } from "../../builtin-function.ts"

const UNSEALED = "unsealed: a function of the program that embeds this host ran in its own process"

const nameOf = ({ builtin, tool }: Implementation): string => builtin?.hostId ?? tool

const missing = (driver: DriverContract, name: string): Failure => ({
  ok: false,
  code: "tool_unavailable",
  message: `there is no builtin \`${name}\` in this host`,
  hint: "give the function to createHost as `builtins: { id: fn }`",
  details: { driver: driver.id },
})

/** JSON as a receiver of it would have it: an undefined member is none, and what has no form in JSON is no value. */
const valueOf = (returned: unknown): JsonValue => JSON.parse(jcs(returned ?? null)) as JsonValue

const run = async (call: KindCall, fn: BuiltinFunction, signal: AbortSignal): Promise<Success | Failure> => {
  const { key } = call.driver
  let returned: unknown
  try {
    returned = await fn({ input: structuredClone(call.input), context: structuredClone(call.context), signal })
  } catch (error) {
    const name = error instanceof Error ? error.name : typeof error
    const message = error instanceof Error ? error.message : String(error)
    return {
      ok: false,
      code: "upstream_error",
      message: `the function of ${key} threw ${name}`,
      hint: "read `details.message`",
      details: { exception: name, message: message.slice(0, 4_096) },
    }
  }
  try {
    return { ok: true, value: valueOf(returned), notes: [] }
  } catch {
    return {
      ok: false,
      code: "output_parse_failed",
      message: `the result of ${key} has no form in JSON`,
      hint: "return plain objects, lists, text, numbers, true, false or null",
      details: {},
    }
  }
}

export const embeddedKind: DriverKindModule = {
  kind: "builtin",
  bringsTransforms: false,
  bind: (_driver, _index, tool, implementation) => ({ binding: { tool, implementation, needs: [] }, diagnostics: [] }),
  unenforceable: () => undefined,
  available: async (driver, here) => {
    const absent = driver.implements.map(nameOf).find((name) => !here.builtins.has(name))
    if (absent === undefined) return { available: true, builtins: here.builtins }
    const { message: reason, hint: fix = "" } = missing(driver, absent)
    return { available: false, code: "tool_unavailable", reason, fix }
  },
  needs: () => ({
    ok: true,
    value: {
      fs: { read: [], write: [], deny: [] },
      env: { pass: [], set: {} },
      egress: [],
      tty: false,
      notes: [UNSEALED],
    },
  }),
  command: (call) => {
    const name = nameOf(call.binding.implementation)
    const fn = call.builtins?.get(name)
    if (fn === undefined) return missing(call.driver.contract, name)
    return {
      ok: true,
      value: { run: "hosted", shown: ["builtin", name], act: (desk) => run(call, fn, desk.signal) },
    }
  },
  outline: ({ binding }) => ["builtin", nameOf(binding.implementation)],
  evidence: ({ binding }) => ({ builtin: nameOf(binding.implementation), sealed: false }),
}
