/** Kind builtin (AIP-30): a function of the host itself. It has no install, auth or network of its own. */
import type { Report } from "../values/diagnostics.ts"
import { optionalText } from "../values/fields.ts"
import type { JsonObject } from "../base-types.ts"

export interface BuiltinCall {
  /** under which the host knows the function; absent in the manifest: the tool's id */
  readonly hostId: string
}

/** What drivers of other kinds declare and this one has no use for. */
export function checkBuiltin(front: JsonObject, report: Report): void {
  for (const key of ["install", "auth", "network"])
    if (front[key] !== undefined) report.error("builtin-extra", key, `a builtin driver has no \`${key}\``, "remove it")
}

export const readBuiltinCall = (block: JsonObject, tool: string): BuiltinCall => ({
  hostId: optionalText(block, "host_id") ?? tool,
})
