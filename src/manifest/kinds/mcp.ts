/**
 * Kind mcp (AIP-32): a server that is started or reached, and the tool of it that serves each contract.
 *
 * Guarantees: what is started is a program, a package, an image or an https address, never a command line; nothing of any
 * one call is bound when the server starts, and no secret stands in its arguments; a transport fits its server.
 * Does not: start or ask anything.
 */
import { checkReach, readAddress } from "../values/address.ts"
import type { Context } from "../values/context.ts"
import { checkEnvLiterals } from "../values/credentials.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import type { EgressEntry } from "../values/egress-entry.ts"
import { type ExtractPath, readExtract } from "../templates/extract.ts"
import {
  defined,
  flag,
  isObject,
  list,
  object,
  optionalNumber,
  optionalObject,
  optionalText,
  text,
  texts,
} from "../values/fields.ts"
import { limits } from "../limits.ts"
import { beforeCalls, readTemplate, type Template } from "../templates/template-tree.ts"
import type { JsonObject } from "../base-types.ts"
import { checkArgv } from "./argv.ts"
import { readSandbox } from "./cli-sandbox.ts"
import type { CliSandbox } from "./cli.ts"
import { type PackageName, parsePackage } from "../values/package-name.ts"
import { readWait } from "./waits.ts"

interface Started {
  /** literal; no shell, no templates */
  readonly args: readonly string[]
  readonly env: readonly { readonly name: string; readonly value: Template }[]
}
export type McpServer =
  | ({ readonly kind: "binary"; readonly path: string } & Started)
  | ({ readonly kind: "npm" } & PackageName & Started)
  | ({ readonly kind: "docker"; readonly image: string } & Started)
  | { readonly kind: "remote"; readonly url: string }

export interface McpPrompt {
  readonly name: string
  readonly description?: string
  readonly integrateAs: "skill_block" | "raw"
  readonly skillRef?: string
}
export interface McpResource {
  readonly uriTemplate: string
  readonly description?: string
  readonly integrateAs: "ref_kind" | "raw"
  readonly refKindId?: string
}

export interface McpSpec {
  readonly server: McpServer
  /** what a server that is started here may do (AIP-29's words, Caisson's extension); absent: what the contract says */
  readonly sandbox?: CliSandbox
  readonly transport: "stdio" | "sse" | "http"
  /** absent: whichever both sides know */
  readonly protocolVersion?: string
  readonly prompts: readonly McpPrompt[]
  readonly resources: readonly McpResource[]
  readonly connection: { readonly timeoutMs?: number; readonly maxRetries?: number; readonly keepalive: boolean }
}

export interface McpCall {
  readonly toolName: string
  /** contract input → argument of the server's tool; absent: all inputs under their own names */
  readonly arguments?: readonly { readonly input: string; readonly argument: string }[]
  readonly extract: ExtractPath
}

const IMAGE =
  /^[a-z0-9][a-z0-9.-]*(?::\d{1,5}(?=\/))?(?:\/[a-z0-9][a-z0-9._-]*)*(?::[A-Za-z0-9_][\w.-]{0,127})?(?:@sha256:[a-f0-9]{64})?$/

function readStarted(server: JsonObject, context: Context): Started {
  const args = texts(server, "args")
  checkArgv(args, "server.args", context)
  args.forEach((arg, i) => {
    if (/\$\{\s*(?:input|context)\b/.test(arg))
      context.report.error(
        beforeCalls.otherwise.rule,
        joinPath("server.args", i),
        `\`${shown(arg, 40)}\` ${beforeCalls.otherwise.message}`,
        "pass it with the call's arguments",
      )
  })
  const env = object(server, "env")
  checkEnvLiterals(env, "server.env", context.report)
  return {
    args,
    env: Object.keys(env).map((name) => ({
      name,
      value: readTemplate(text(env, name), joinPath("server.env", name), beforeCalls, context),
    })),
  }
}

function readServer(server: JsonObject, egress: readonly EgressEntry[], context: Context): McpServer {
  const { report } = context
  const bad = (key: string, message: string, fix: string): void =>
    report.error("mcp-server", `server.${key}`, message, fix)
  if (server["kind"] === "remote") {
    const address = readAddress(text(server, "url"))
    if (!address.ok || address.text.includes("${"))
      bad(
        "url",
        address.ok ? "`server.url` depends on values; a driver talks to one fixed server" : address.message,
        "write the full `https://…` address",
      )
    else checkReach(address.url, "server.url", egress, context)
    for (const key of ["args", "env"].filter((name) => server[name] !== undefined))
      report.warn("mcp-remote-extra", `server.${key}`, `nothing is started, so that \`${key}\` has no use`, "remove it")
    return { kind: "remote", url: text(server, "url") }
  }
  const started = readStarted(server, context)
  if (server["kind"] === "npm") {
    const named = parsePackage("npm", text(server, "package"))
    if (named === undefined)
      bad(
        "package",
        `\`${shown(text(server, "package"), 60)}\` is not the name of a package of npm`,
        "write its name, perhaps with a version",
      )
    return { kind: "npm", ...(named ?? { package: "", name: "" }), ...started }
  }
  if (server["kind"] === "docker") {
    const image = text(server, "image")
    if (image.length > 512 || !IMAGE.test(image))
      bad(
        "image",
        `\`${shown(image, 60)}\` is not the name of an image`,
        "write a name such as `ghcr.io/acme/server:1.2`",
      )
    return { kind: "docker", image, ...started }
  }
  const path = text(server, "path")
  if (path.split("/").includes("..") || path.endsWith("/") || !/^[A-Za-z0-9._/+-]+$/.test(path) || path.startsWith("-"))
    report.error(
      "path-escape",
      "server.path",
      `\`${shown(path)}\` leads elsewhere`,
      "write a program name, or a path inside the manifest's folder",
    )
  return { kind: "binary", path, ...started }
}

/** Entries of a list that a preview of the specification describes; those of another form are left out. */
function readEntries<T>(
  front: JsonObject,
  key: "prompts" | "resources",
  read: (entry: JsonObject) => T | undefined,
  context: Context,
): readonly T[] {
  return list(front, key).flatMap((entry, i) => {
    const made = isObject(entry) ? read(entry) : undefined
    if (made !== undefined) return [made]
    const say = context.mode === "strict" ? context.report.error : context.report.lenient
    say(
      `mcp-${key}`,
      joinPath(key, i),
      `this is not one of the ${key} of AIP-32${context.mode === "strict" ? "" : " and is left out"}`,
      key === "prompts" ? "write `{ name, integrate_as: raw }`" : "write `{ uri_template, integrate_as: raw }`",
    )
    return []
  })
}

function readPrompt(entry: JsonObject): McpPrompt | undefined {
  const name = text(entry, "name")
  const integrateAs = (["skill_block", "raw"] as const).find((known) => known === entry["integrate_as"])
  if (name === "" || integrateAs === undefined) return undefined
  return defined({
    name,
    description: optionalText(entry, "description"),
    integrateAs,
    skillRef: optionalText(entry, "skill_ref"),
  })
}

function readResource(entry: JsonObject): McpResource | undefined {
  const uriTemplate = text(entry, "uri_template")
  const integrateAs = (["ref_kind", "raw"] as const).find((known) => known === entry["integrate_as"])
  const refKindId = optionalText(entry, "ref_kind_id")
  if (!/^[a-z][a-z0-9+.-]*:[^\s\u0000-\u001f]*$/i.test(uriTemplate) || integrateAs === undefined) return undefined
  if (refKindId !== undefined && !/^[a-z][a-z0-9_]*$/.test(refKindId)) return undefined
  return defined({ uriTemplate, description: optionalText(entry, "description"), integrateAs, refKindId })
}

export function readMcp(front: JsonObject, egress: readonly EgressEntry[], context: Context): McpSpec {
  const server = readServer(object(front, "server"), egress, context)
  const transport = text(front, "transport") as McpSpec["transport"]
  if ((server.kind === "remote") === (transport === "stdio"))
    context.report.error(
      "mcp-transport",
      "transport",
      server.kind === "remote"
        ? "a remote server has no standard input"
        : `a server that is started here speaks over its standard input, not \`${transport}\``,
      server.kind === "remote" ? "write `transport: http`" : "write `transport: stdio`",
    )
  const options = object(front, "connection_options")
  const wait = { key: "timeout_ms", fallback: 30_000, most: limits.serverWaitMs }
  const sandbox = optionalObject(front, "sandbox")
  if (sandbox !== undefined && server.kind === "remote")
    context.report.warn("mcp-remote-extra", "sandbox", "nothing is started, so that `sandbox` has no use", "remove it")
  return defined({
    server,
    sandbox:
      sandbox === undefined || server.kind === "remote" ? undefined : readSandbox(sandbox, "sandbox", context.report),
    transport,
    protocolVersion: optionalText(front, "protocol_version"),
    prompts: readEntries(front, "prompts", readPrompt, context),
    resources: readEntries(front, "resources", readResource, context),
    connection: defined({
      timeoutMs:
        options["timeout_ms"] === undefined ? undefined : readWait(options, wait, "connection_options", context),
      maxRetries: optionalNumber(options, "max_retries"),
      keepalive: flag(options, "keepalive"),
    }),
  })
}

function readArguments(block: JsonObject, path: string, context: Context): McpCall["arguments"] {
  if (block["argument_mapping"] === undefined) return undefined
  const mapping = object(block, "argument_mapping")
  const seen = new Set<string>()
  return Object.keys(mapping).map((input) => {
    const argument = text(mapping, input)
    const at = joinPath(`${path}.argument_mapping`, input)
    if (seen.has(argument))
      context.report.error("mapping-twice", at, `\`${shown(argument, 40)}\` gets two inputs`, "keep one of them")
    seen.add(argument)
    return { input, argument }
  })
}

export function readMcpCall(block: JsonObject, path: string, context: Context): McpCall {
  const toolName = text(block, "tool_name")
  if (/[\u0000-\u0020\u007f]/.test(toolName))
    context.report.error(
      "bad-value",
      `${path}.tool_name`,
      "a tool's name has no blanks",
      "write it as `tools/list` gives it",
    )
  return defined({
    toolName,
    arguments: readArguments(block, path, context),
    extract: readExtract(optionalText(block, "result_extract"), `${path}.result_extract`, context),
  })
}
