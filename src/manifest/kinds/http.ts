/**
 * Kind http (AIP-31): one fixed base address, and one request for each tool.
 *
 * Guarantees: the host that is asked never depends on a call; an endpoint is a path below the base and stays there;
 * headers, query and body are parsed templates; method, headers and streaming of a request are settled against the
 * driver's defaults. Does not: send anything.
 */
import { withoutEnd } from "../values/ends.ts"
import { readAddress } from "../values/address.ts"
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { type ExtractPath, readExtract } from "../templates/extract.ts"
import { defined, object, optionalNumber, optionalObject, optionalText, text } from "../values/fields.ts"
import { perCall, readTemplate, readTemplates, type Template, type TemplateTree } from "../templates/template-tree.ts"
import type { JsonObject } from "../base-types.ts"
import { headerName, type HttpHeader, readHeaders } from "./http-headers.ts"

export type HttpMethod = "GET" | "POST" | "PUT" | "PATCH" | "DELETE"

export interface HttpBase {
  /** `https://api.example.com:8443` */
  readonly origin: string
  readonly host: string
  readonly port: number
  readonly secure: boolean
  /** `/v1`, or nothing; never ends in a slash */
  readonly path: string
}

export interface HttpStreaming {
  readonly transport: "sse" | "ndjson" | "chunked"
  readonly eventField?: string
  /** the event that ends the stream */
  readonly terminator?: string
}

export interface HttpSpec {
  readonly base: HttpBase
  readonly defaultHeaders: readonly HttpHeader[]
  readonly defaultMethod: HttpMethod
  readonly streaming?: HttpStreaming
  /** what the service asks of its callers; a hint */
  readonly rateLimit?: { readonly requestsPerMinute?: number; readonly burst?: number }
}

/** The request of one tool, with the driver's defaults already in it. */
export interface HttpCall {
  /** below the base's path; begins with a slash */
  readonly endpoint: Template
  readonly method: HttpMethod
  readonly headers: readonly HttpHeader[]
  readonly query: readonly { readonly name: string; readonly value: TemplateTree }[]
  /** absent: the input itself, as JSON; a GET has none */
  readonly body?: TemplateTree
  /** what of the response is the result */
  readonly extract: ExtractPath
  readonly streaming?: HttpStreaming
  /** gets one key for each call, the same in all of its attempts */
  readonly idempotencyKeyHeader?: string
}

const nowhere: HttpBase = { origin: "https://unset.invalid", host: "unset.invalid", port: 443, secure: true, path: "" }

function readBase(front: JsonObject, context: Context): HttpBase {
  const address = readAddress(text(front, "base_url"))
  if (!address.ok || address.url.search !== "") {
    context.report.error(
      "http-base-url",
      "base_url",
      address.ok ? "`base_url` has a query" : address.message,
      "write one fixed address such as `https://api.example.com/v1`",
    )
    return nowhere
  }
  const { protocol, hostname, port, origin, pathname } = address.url
  const secure = protocol === "https:"
  if (!secure)
    context.report.warn(
      "http-plaintext",
      "base_url",
      "requests to `http://`, and secrets in them, travel in the clear",
      "write `https://`",
    )
  return {
    origin,
    host: hostname,
    port: port === "" ? (secure ? 443 : 80) : Number(port),
    secure,
    path: withoutEnd(pathname, "/"),
  }
}

function readStreaming(
  block: JsonObject | undefined,
  path: string,
  inherited: HttpStreaming | undefined,
  context: Context,
): HttpStreaming | undefined {
  if (block === undefined) return inherited
  const transport = (optionalText(block, "transport") as HttpStreaming["transport"] | undefined) ?? inherited?.transport
  if (transport === undefined) {
    context.report.error("missing-field", `${path}.transport`, "streaming needs a `transport`", "add `transport: sse`")
    return undefined
  }
  return defined({
    transport,
    eventField: optionalText(block, "event_field") ?? inherited?.eventField,
    terminator: optionalText(block, "terminator") ?? inherited?.terminator,
  })
}

export function readHttp(front: JsonObject, context: Context): HttpSpec {
  const rate = optionalObject(front, "rate_limit")
  return defined({
    base: readBase(front, context),
    defaultHeaders: readHeaders(object(front, "default_headers"), "default_headers", context),
    defaultMethod: (optionalText(front, "default_method") ?? "POST") as HttpMethod,
    streaming: readStreaming(optionalObject(front, "streaming"), "streaming", undefined, context),
    rateLimit:
      rate === undefined
        ? undefined
        : defined({
            requestsPerMinute: optionalNumber(rate, "requests_per_minute"),
            burst: optionalNumber(rate, "burst"),
          }),
  })
}

/** A path, whatever the input: what the author wrote neither names another host nor climbs. */
function readEndpoint(block: JsonObject, path: string, context: Context): Template {
  const written = text(block, "endpoint")
  const template = readTemplate(written.startsWith("/") ? written : `/${written}`, path, perCall, context)
  // What a template stands for is one encoded piece of a segment, so that it is read here as a letter.
  const literal = template.parts.map((part) => (part.type === "literal" ? part.text : "x")).join("")
  const decoded = literal.replaceAll(/%2e/gi, ".").replaceAll(/%2f/gi, "/")
  if (
    /^[A-Za-z][A-Za-z0-9+.-]*:/.test(written) ||
    /^[/\\]{2}/.test(literal) ||
    decoded.split("/").some((part) => part === "." || part === "..")
  )
    context.report.error(
      "http-endpoint",
      path,
      `\`${shown(written)}\` leads away from \`base_url\``,
      "write a path below it, as in `/v1/items`",
    )
  else if (/[^\u0021-\u007e]|[\\#?]/.test(literal))
    context.report.error(
      "http-endpoint",
      path,
      `\`${shown(written)}\` is not a path`,
      "write a path alone; what follows `?` belongs into `query_template`, and other characters are percent-encoded",
    )
  return template
}

function readQuery(block: JsonObject, path: string, context: Context): HttpCall["query"] {
  return Object.entries(block).map(([name, written]) => {
    const at = joinPath(path, name)
    const value = readTemplates(written, at, perCall, context)
    if (value.type === "list" || value.type === "object")
      context.report.error("wrong-type", at, "a value of the query is one text or number", "write one template")
    return { name, value }
  })
}

export function readHttpCall(block: JsonObject, path: string, spec: HttpSpec, context: Context): HttpCall {
  const method = (optionalText(block, "method") as HttpMethod | undefined) ?? spec.defaultMethod
  const own = readHeaders(object(block, "headers"), `${path}.headers`, context)
  const body = block["body_template"]
  if (body !== undefined && method === "GET")
    context.report.warn(
      "http-get-body",
      `${path}.body_template`,
      "a GET request carries no body",
      "write `method: POST`",
    )
  const key = optionalText(block, "idempotency_key_header")
  return defined({
    endpoint: readEndpoint(block, `${path}.endpoint`, context),
    method,
    headers: [...spec.defaultHeaders.filter(({ name }) => !own.some((other) => other.name === name)), ...own],
    query: readQuery(object(block, "query_template"), `${path}.query_template`, context),
    body:
      body === undefined || method === "GET"
        ? undefined
        : readTemplates(body, `${path}.body_template`, perCall, context),
    extract: readExtract(optionalText(block, "response_extract"), `${path}.response_extract`, context),
    streaming: readStreaming(optionalObject(block, "streaming"), `${path}.streaming`, spec.streaming, context),
    idempotencyKeyHeader: key === undefined ? undefined : headerName(key, `${path}.idempotency_key_header`, context),
  })
}
