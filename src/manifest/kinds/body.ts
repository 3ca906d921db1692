/** What a driver's kind adds to the universal layer, and to each of its `implements[]` entries. */
import type { Context } from "../values/context.ts"
import type { EgressEntry } from "../values/egress-entry.ts"
import type { DriverKind, JsonObject } from "../base-types.ts"
import { type BuiltinCall, type BuiltinSpec, readBuiltin, readBuiltinCall } from "./builtin.ts"
import { type CliCall, type CliSpec, readCli, readCliCall } from "./cli.ts"
import { type HttpCall, type HttpSpec, readHttp, readHttpCall } from "./http.ts"
import { type McpCall, type McpSpec, readMcp, readMcpCall } from "./mcp.ts"
import { readSdk, readSdkCall, type SdkCall, type SdkSpec } from "./sdk.ts"

export type DriverBody =
  | { readonly kind: "cli"; readonly cli: CliSpec }
  | { readonly kind: "http"; readonly http: HttpSpec }
  | { readonly kind: "mcp"; readonly mcp: McpSpec }
  | { readonly kind: "sdk"; readonly sdk: SdkSpec }
  | { readonly kind: "builtin"; readonly builtin: BuiltinSpec }
  /** run by functions of its own, of whatever kind it calls itself */
  | { readonly kind: "code"; readonly as: DriverKind }

/** The kind that it declares: what constraints, ranks and listings go by. */
export const declaredKind = ({ body }: { readonly body: DriverBody }): DriverKind =>
  body.kind === "code" ? body.as : body.kind

/** The cli half of a driver that has one. */
export const cliOf = ({ body }: { readonly body: DriverBody }): CliSpec | undefined =>
  body.kind === "cli" ? body.cli : undefined

export function readBody(
  front: JsonObject,
  kind: DriverKind,
  egress: readonly EgressEntry[],
  context: Context,
): DriverBody {
  switch (kind) {
    case "cli":
      return { kind, cli: readCli(front, context) }
    case "http":
      return { kind, http: readHttp(front, context) }
    case "mcp":
      return { kind, mcp: readMcp(front, egress, context) }
    case "sdk":
      return { kind, sdk: readSdk(front, context) }
    case "builtin":
      return { kind, builtin: readBuiltin(front, context.report) }
  }
}

/** What the driver knows when it reads how it serves one tool. */
export interface DriverSide {
  readonly body: DriverBody
  readonly egress: readonly EgressEntry[]
}
/** How one tool is served by a driver of its kind; at most the one of that kind is there. */
export interface KindCall {
  readonly cli?: CliCall
  readonly http?: HttpCall
  readonly mcp?: McpCall
  readonly sdk?: SdkCall
  readonly builtin?: BuiltinCall
}

/** `block`: what the entry's `metadata` says for the driver's kind, which stands at `path`. */
export function readCall(
  block: JsonObject | undefined,
  path: string,
  { body, egress }: DriverSide,
  tool: string,
  context: Context,
): KindCall {
  if (body.kind === "builtin")
    return { builtin: readBuiltinCall(block ?? {}, path, { tool, driver: body.builtin }, context.report) }
  if (block === undefined || body.kind === "code") return {}
  switch (body.kind) {
    case "cli":
      return { cli: readCliCall(block, path, body.cli, egress, context) }
    case "http":
      return { http: readHttpCall(block, path, body.http, context) }
    case "mcp":
      return { mcp: readMcpCall(block, path, context) }
    case "sdk":
      return { sdk: readSdkCall(block, path, body.sdk, tool, context) }
  }
}
