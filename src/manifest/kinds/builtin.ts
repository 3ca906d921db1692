/** Kind builtin (AIP-30): a function of the host itself. It has no install, auth or network of its own. */
import type { Report } from "../values/diagnostics.ts"
import { object, objects, optionalObject, optionalText } from "../values/fields.ts"
import { type DatabaseCall, DATABASE_HOSTS, readDatabase } from "./database.ts"
import type { CliSandbox } from "./cli.ts"
import { readSandbox } from "./cli-sandbox.ts"
import type { JsonObject } from "../base-types.ts"

export interface BuiltinSpec {
  /** what of the workspace its functions see and write; absent: all of it, and what the contract says */
  readonly fs?: CliSandbox["fs"]
  /** the host, or the function, of entries that name none of their own (`metadata.builtin.host_id`) */
  readonly hostId?: string
}

/** The function that answers with what a person says. */
export const HUMAN = "caisson.human"

export interface BuiltinCall {
  /** under which the host knows the function; absent in the manifest: the driver's, else the tool's id */
  readonly hostId: string
  /** of a function that asks a database: which, and what */
  readonly database?: DatabaseCall
}

/** What drivers of other kinds declare and this one has no use for is an error. */
export function readBuiltin(front: JsonObject, report: Report): BuiltinSpec {
  // A function of the host that asks a service has what a driver of that service has.
  const asks = objects(front, "implements").some(
    (entry) => object(object(object(entry, "metadata"), "builtin"), "database")["address"] !== undefined,
  )
  for (const key of asks ? ["install"] : ["install", "auth", "network"])
    if (front[key] !== undefined) report.error("builtin-extra", key, `a builtin driver has no \`${key}\``, "remove it")
  const sandbox = optionalObject(front, "sandbox")
  const hostId = optionalText(object(object(front, "metadata"), "builtin"), "host_id")
  return {
    ...(sandbox === undefined ? {} : { fs: readSandbox(sandbox, "sandbox", report).fs }),
    ...(hostId === undefined ? {} : { hostId }),
  }
}

export function readBuiltinCall(
  block: JsonObject,
  path: string,
  { tool, driver }: { readonly tool: string; readonly driver: BuiltinSpec },
  report: Report,
): BuiltinCall {
  const hostId = optionalText(block, "host_id") ?? driver.hostId ?? tool
  const database = optionalObject(block, "database")
  if (database === undefined) return { hostId }
  const engine = hostId === DATABASE_HOSTS.mysql ? "mysql" : "postgresql"
  if (hostId !== DATABASE_HOSTS[engine])
    report.error(
      "database",
      `${path}.host_id`,
      "no function of the host asks such a database",
      `write \`host_id: ${DATABASE_HOSTS.postgresql}\` or \`${DATABASE_HOSTS.mysql}\``,
    )
  return { hostId, database: readDatabase(engine, database, `${path}.database`, report) }
}
