/**
 * Functions that a program which embeds the host hands over as builtins: the one thing that runs in this process and is
 * not the host's own.
 *
 * Guarantees: read once, when the host is made; only functions, under names that a manifest can have.
 */
import type { BuiltinFunction } from "../../builtin-function.ts"
import { isOwn } from "../builtin/kind.ts"
import { HostStartError } from "../../start-error.ts"

export type BuiltinFunctions = ReadonlyMap<string, BuiltinFunction>

const NAME = /^[A-Za-z0-9][A-Za-z0-9._:/-]{0,255}$/

export const readBuiltins = (given: unknown = {}): BuiltinFunctions => {
  const bad = (message: string): HostStartError =>
    new HostStartError("input_invalid", message, "pass `builtins: { 'tool.id': async ({ input }) => … }`")
  if (typeof given !== "object" || given === null) throw bad("`builtins` is no record of functions")
  const entries = Object.entries(given).map(([name, run]: [string, unknown]): [string, BuiltinFunction] => {
    if (!NAME.test(name))
      throw bad(`the builtin ${JSON.stringify(name.slice(0, 60))} has a name that no manifest can have`)
    if (isOwn(name)) throw bad(`the builtin \`${name}\` is the host's own`)
    if (typeof run !== "function") throw bad(`the builtin \`${name}\` is no function`)
    return [name, run as BuiltinFunction]
  })
  return new Map(entries)
}
