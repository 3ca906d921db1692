/** Kind builtin (AIP-30): a function of the host itself. It has no install, auth or network of its own. */
import type { Report } from "../values/diagnostics.ts"
import { optionalObject, optionalText } from "../values/fields.ts"
import type { CliSandbox } from "./cli.ts"
import { readSandbox } from "./cli-sandbox.ts"
import type { JsonObject } from "../base-types.ts"

export interface BuiltinSpec {
  /** what of the workspace its functions see and write; absent: all of it, and what the contract says */
  readonly fs?: CliSandbox["fs"]
}

export interface BuiltinCall {
  /** under which the host knows the function; absent in the manifest: the tool's id */
  readonly hostId: string
}

/** What drivers of other kinds declare and this one has no use for is an error. */
export function readBuiltin(front: JsonObject, report: Report): BuiltinSpec {
  for (const key of ["install", "auth", "network"])
    if (front[key] !== undefined) report.error("builtin-extra", key, `a builtin driver has no \`${key}\``, "remove it")
  const sandbox = optionalObject(front, "sandbox")
  return sandbox === undefined ? {} : { fs: readSandbox(sandbox, "sandbox", report).fs }
}

export const readBuiltinCall = (block: JsonObject, tool: string): BuiltinCall => ({
  hostId: optionalText(block, "host_id") ?? tool,
})
