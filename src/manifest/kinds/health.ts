/**
 * `health_check` (AIP-30, C-57) and the web probes that logins use too → typed checks with their defaults.
 *
 * Guarantees: a check says how it is done; a probe asks a fixed host. Does not: run anything.
 */
import { checkReach, readAddress } from "../values/address.ts"
import type { Context } from "../values/context.ts"
import type { EgressEntry } from "../values/egress-entry.ts"
import { defined, object, optionalNumber, optionalObject, optionalText, text } from "../values/fields.ts"
import { limits } from "../limits.ts"
import type { JsonObject } from "../base-types.ts"
import { readEvery, readWait } from "./waits.ts"

export interface HttpProbe {
  readonly method: "GET" | "POST" | "HEAD"
  readonly url: string
  /** absent: any 2xx */
  readonly expectStatus?: number
}

export type HealthCheck = { readonly everyMs?: number; readonly timeoutMs: number } & (
  | { readonly method: "noop" }
  /** the kind's own way: a ping of the server, a request to the base address, the version check */
  | { readonly method: "ping" }
  | { readonly method: "exec"; readonly cmd: string; readonly expectExit: number }
  | { readonly method: "http"; readonly probe: HttpProbe }
)

export function readProbe(
  block: JsonObject,
  path: string,
  egress: readonly EgressEntry[],
  context: Context,
): HttpProbe {
  const address = readAddress(text(block, "url"))
  if (address.ok) checkReach(address.url, `${path}.url`, egress, context)
  else context.report.error("bad-value", `${path}.url`, address.message, "write the full `https://…` address")
  return defined({
    method: (optionalText(block, "method") ?? "GET") as HttpProbe["method"],
    url: text(block, "url"),
    expectStatus: optionalNumber(block, "expect_status"),
  })
}

export function readHealth(
  front: JsonObject,
  egress: readonly EgressEntry[],
  context: Context,
): HealthCheck | undefined {
  const block = optionalObject(front, "health_check")
  if (block === undefined) return undefined
  const common = defined({
    everyMs: readEvery(block, limits.healthEveryMs, "health_check", context),
    timeoutMs: readWait(
      block,
      { key: "timeout_ms", fallback: 5000, most: limits.healthCheckMs },
      "health_check",
      context,
    ),
  })
  const missing = (key: string, fix: string): undefined => {
    context.report.error(
      "missing-field",
      `health_check.${key}`,
      `\`health_check.method: ${text(block, "method")}\` needs \`${key}\``,
      fix,
    )
    return undefined
  }
  switch (text(block, "method")) {
    case "exec": {
      const cmd = optionalText(block, "cmd")
      if (cmd === undefined) return missing("cmd", "add `cmd:`")
      return { ...common, method: "exec", cmd, expectExit: optionalNumber(block, "expect_exit") ?? 0 }
    }
    case "http": {
      if (block["http"] === undefined) return missing("http", "add `http: { url, expect_status }`")
      return {
        ...common,
        method: "http",
        probe: readProbe(object(block, "http"), "health_check.http", egress, context),
      }
    }
    case "ping":
      return { ...common, method: "ping" }
    default:
      return { ...common, method: "noop" }
  }
}
