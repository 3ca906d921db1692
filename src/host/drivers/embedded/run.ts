/**
 * A function of the program that embeds the host, called in its process: the one part of a call that is not sealed.
 *
 * Guarantees: it is handed copies and the call's own layer; its value is JSON, bounded, and judged like any other. What it
 * does beside that nobody watches.
 */
import { FS_ROOT_INPUT } from "../../../manifest/contracts/file-contract.ts"
import { jcs } from "../../../manifest/values/digest.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { wholeInput } from "../../invoke/whole-input.ts"
import type { Desk, KindCall } from "../kind.ts"
import type { BuiltinFunction } from "../../builtin-function.ts"

/** JSON as a receiver of it would have it: an undefined member is none, and what has no form in JSON is no value. */
const textOf = (returned: unknown): string => jcs(returned ?? null)

const tooLarge = (key: string, most: number): Failure => ({
  ok: false,
  code: "limit_exceeded",
  message: `the result of ${key} has more than ${most} bytes`,
  details: { limit: "output" },
})

/** Where the files are on this machine, under whatever name the driver has for it: what a sandbox has there is not here. */
const withFilesAt = (call: KindCall, filesAt: string): JsonObject => {
  const renamed = Object.entries(call.binding.implementation.mapping).filter(([, { from }]) => from === FS_ROOT_INPUT)
  const names = renamed.length === 0 ? [FS_ROOT_INPUT] : renamed.map(([name]) => name)
  return { ...wholeInput(call), ...Object.fromEntries(names.map((name) => [name, filesAt])) }
}

export const runEmbedded = async (
  call: KindCall,
  fn: BuiltinFunction,
  { layer: files, filesAt, signal, outputBytes }: Desk,
): Promise<Success | Failure> => {
  const { key } = call.driver
  let returned: unknown
  try {
    const input = filesAt === undefined ? wholeInput(call) : withFilesAt(call, filesAt)
    returned = await fn({ input: structuredClone(input), context: structuredClone(call.context), files, signal })
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
    const text = textOf(returned)
    if (Buffer.byteLength(text) > outputBytes) return tooLarge(key, outputBytes)
    return { ok: true, value: JSON.parse(text) as JsonValue, notes: [] }
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
