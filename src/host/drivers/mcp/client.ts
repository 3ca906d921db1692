/**
 * One connection to an MCP server with the official client: era, the tool that is meant, one call of it.
 *
 * Guarantees: both eras of the protocol are spoken; which one is asked of the server, unless the driver names it. What the
 * server is told of this side is a name and whether a person can be asked; it gets no roots and no model. Schemas that it
 * sends are never fetched, and run under the host's own bounds. Every way in which it can fail is a failure in the
 * reason table, with its own words cut short.
 * Does not: decide whether the tool may be used, nor read its result.
 */
import type * as McpClient from "@modelcontextprotocol/client"
import type {
  CallToolResult,
  Client,
  jsonSchemaValidator,
  Progress,
  Tool,
  Transport,
} from "@modelcontextprotocol/client"
import { compileSchema } from "../../../manifest/schema/json-schema.ts"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { Tell } from "../../events.ts"
import type { Failure } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { Answer, Elicit } from "../kind.ts"
import { isShallow } from "../runner/frames.ts"
import { mirrorsWell } from "./mirrored.ts"

type Sdk = typeof McpClient
/** Loaded at the first call: nothing else of the host needs it. */
export const loadSdk = (): Promise<Sdk> => import("@modelcontextprotocol/client")

/** A transport that may have closed the connection by itself, and says why. */
export interface Closable extends Transport {
  readonly fault?: string | undefined
  /** the server ended its side */
  readonly left?: boolean
}

/** Whoever makes a call, as far as the server can reach them. */
interface Caller {
  readonly signal: AbortSignal
  readonly tell: Tell
  /** absent: nobody is there to be asked */
  readonly elicit?: Elicit | undefined
}

interface ConnectionOptions {
  /** the driver's `protocol_version` */
  readonly version: string | undefined
  readonly timeoutMs: number | undefined
  /** it serves calls of several callers, one after the other */
  readonly kept: boolean
  /** what the way to the server has to say of a failure */
  readonly trouble?: (() => Failure | undefined) | undefined
}

const NEW_ERA = "2026-07-28"
const OWN = { name: "caisson", version: "1" }

const cut = (text: string): string => shown(text, hostLimits.mcpMessageChars.value)

/** A schema that cannot be used here checks nothing: what counts is the contract, which is checked afterwards. */
const boundedValidator: jsonSchemaValidator = {
  getValidator: <T>(schema: object) => {
    const compiled = compileSchema(schema as JsonObject)
    return (input: unknown) => {
      const checked = compiled.ok ? compiled.validate(input) : { ok: true as const }
      return checked.ok
        ? { valid: true, data: input as T, errorMessage: undefined }
        : { valid: false, data: undefined, errorMessage: checked.errors[0]?.message ?? "it does not match" }
    }
  },
}

class TooDeep extends Error {}
/** Lines are held to it before they are read (`line-transport.ts`); what comes over HTTP is here. */
const shallow = <T>(said: T): T => {
  if (isShallow(said as JsonValue, hostLimits.mcpDepth.value)) return said
  throw new TooDeep(`it wrote a message nested more than ${hostLimits.mcpDepth.value} deep`)
}

/** As for a driver of kind http: who must act, and whether another try makes sense. */
const httpFailure = (status: number, said: string, during: string): Failure => {
  const details = { during, status }
  if (status === 401 || status === 403)
    return { ok: false, code: "auth_required", message: `the server wants a login (${status})`, details }
  if (status === 429) return { ok: false, code: "rate_limited", message: "the server is asked too often", details }
  return {
    ok: false,
    code: "upstream_error",
    message: `the server answered with ${status}: ${said}`,
    retryable: status >= 500,
    details,
  }
}

/** What the server asks a person, and the answer as the protocol has it; nobody there to be asked dismisses it. */
const passOn = (client: Client, asked: () => Elicit | undefined): void =>
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    if (params.mode === "url") return { action: "decline" as const }
    const elicit = asked()
    if (elicit === undefined) return { action: "cancel" as const }
    const answer = await elicit({
      message: cut(params.message),
      schema: params.requestedSchema as unknown as JsonObject,
    })
    return answer.action === "accept"
      ? { action: "accept" as const, content: { ...answer.content } as Record<string, string | number | boolean> }
      : { action: answer.action }
  })

const modeFor = (version: string | undefined): "auto" | "legacy" | { pin: string } => {
  if (version === undefined) return "auto"
  return version >= NEW_ERA ? { pin: version } : "legacy"
}

export class Connection implements AsyncDisposable {
  readonly #sdk: Sdk
  readonly #client: Client
  readonly #transport: Closable
  readonly #options: ConnectionOptions
  #caller: Caller
  constructor(sdk: Sdk, transport: Closable, caller: Caller, options: ConnectionOptions) {
    const { version } = options
    // What a kept server is told once holds for all who will call: some may be there to be asked.
    const asks = options.kept || caller.elicit !== undefined
    this.#sdk = sdk
    this.#transport = transport
    this.#caller = caller
    this.#options = options
    this.#client = new sdk.Client(OWN, {
      capabilities: asks ? { elicitation: { form: { applyDefaults: true } } } : {},
      jsonSchemaValidator: boundedValidator,
      versionNegotiation: { mode: modeFor(version), probe: { timeoutMs: hostLimits.mcpProbeMs.value } },
      inputRequired: { maxRounds: hostLimits.mcpRounds.value },
    })
    // Whatever is wrong with one message shows in the answer that it was, or that never comes.
    this.#client.onerror = () => undefined
    if (asks) passOn(this.#client, () => (this.#caller.signal.aborted ? undefined : this.#caller.elicit))
  }

  /** From now on what the server says is for this caller. */
  serve(caller: Caller): void {
    this.#caller = caller
  }
  get #wait(): { readonly timeout: number; readonly signal: AbortSignal } {
    return { timeout: this.#options.timeoutMs ?? hostLimits.mcpSilenceMs.value, signal: this.#caller.signal }
  }
  /** `2026-07-28`, once connected */
  get version(): string {
    return this.#client.getNegotiatedProtocolVersion() ?? "unknown"
  }

  async open(): Promise<Failure | undefined> {
    const { signal } = this.#caller
    // The probe for the era does not hear the signal.
    const leave = (): void => void this.#transport.close()
    signal.addEventListener("abort", leave, { once: true })
    try {
      if (signal.aborted) return this.#failure(signal.reason, "connect")
      await this.#client.connect(this.#transport, this.#wait)
      return undefined
    } catch (error) {
      return this.#failure(error, "connect")
    } finally {
      signal.removeEventListener("abort", leave)
    }
  }
  /** All that it lists; asked without this client's own list, which tells this process's output what it leaves out. */
  async #tools(wait: { readonly timeout: number; readonly signal: AbortSignal }): Promise<readonly Tool[]> {
    const tools: Tool[] = []
    let cursor: string | undefined
    for (let page = 0; page < hostLimits.mcpPages.value; page += 1) {
      const params = cursor === undefined ? {} : { cursor }
      const listed = shallow(await this.#client.request({ method: "tools/list", params }, wait))
      tools.push(...listed.tools)
      cursor = listed.nextCursor
      if (cursor === undefined) return tools
    }
    throw new Error(`its list of tools has more than ${hostLimits.mcpPages.value} pages`)
  }
  /** Undefined: the server has none of that name. `withinMs`: how long each answer may take, where that is less. */
  async find(name: string, withinMs = Number.POSITIVE_INFINITY): Promise<Answer<Tool | undefined>> {
    const { timeout, signal } = this.#wait
    const wait = { timeout: Math.min(timeout, withinMs), signal }
    const odd = (why: string): Failure => ({
      ok: false,
      code: "upstream_error",
      message: `the server lists ${why} \`${shown(name, 60)}\``,
      details: {},
    })
    try {
      if (this.#client.getServerCapabilities()?.tools === undefined) return { ok: true, value: undefined }
      const [tool, other] = (await this.#tools(wait)).filter((each) => each.name === name)
      if (other !== undefined) return odd("more than one tool")
      const isModern = this.#client.getProtocolEra() === "modern"
      if (tool !== undefined && isModern && !mirrorsWell(tool.inputSchema as unknown as JsonObject))
        return odd("headers that no request can have for its tool")
      return { ok: true, value: tool }
    } catch (error) {
      return this.#failure(error, "tools/list")
    }
  }
  async call(tool: Tool, values: JsonObject): Promise<Answer<CallToolResult>> {
    const { tell } = this.#caller
    const onprogress = ({ progress, total, message }: Progress): void =>
      tell({
        type: "progress",
        value: { progress, ...(total === undefined ? {} : { total }), ...(message === undefined ? {} : { message }) },
      })
    try {
      const result = await this.#client.callTool(
        { name: tool.name, arguments: values as Record<string, JsonValue> },
        { ...this.#wait, onprogress, resetTimeoutOnProgress: true, toolDefinition: tool },
      )
      return { ok: true, value: shallow(result) }
    } catch (error) {
      return this.#failure(error, "tools/call")
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#client.close().catch(() => undefined)
    await this.#transport.close().catch(() => undefined)
  }

  /** Some end at a question that they do not know. */
  #hintFor(during: string): string | undefined {
    return during === "connect" && this.#options.version === undefined
      ? "read `details.stderr`; a server that ends when it is asked which protocol it speaks needs `protocol_version: 2025-11-25` in its driver"
      : undefined
  }
  #failure(error: unknown, during: string): Failure {
    const { InsufficientScopeError, SdkError, SdkErrorCode, SdkHttpError, ProtocolError } = this.#sdk
    const { signal, elicit } = this.#caller
    const said = cut(error instanceof Error ? error.message : String(error))
    const failed = (code: Failure["code"], message: string, more: JsonObject = {}, hint?: string): Failure => ({
      ok: false,
      code,
      message,
      ...(hint === undefined ? {} : { hint }),
      details: { during, ...more },
    })
    const gone = (): Failure =>
      failed("upstream_error", `the server left without an answer (${during})`, {}, this.#hintFor(during))
    const fault = error instanceof TooDeep ? said : this.#transport.fault
    if (fault !== undefined)
      return failed("limit_exceeded", `the server was left: ${fault}; nothing was committed`, { limit: "mcp" })
    if (signal.aborted) return failed("cancelled", "the call was cancelled; nothing was committed")
    // The client has a class of its own for a refusal that names scopes, which is always one by status 403.
    if (error instanceof InsufficientScopeError) return httpFailure(403, said, during)
    if (error instanceof SdkHttpError && error.status !== undefined) return httpFailure(error.status, said, during)
    const trouble = error instanceof ProtocolError ? undefined : this.#options.trouble?.()
    if (trouble !== undefined) return { ...trouble, details: { during, ...trouble.details } }
    if (error instanceof ProtocolError)
      return failed("upstream_error", `the server refused: ${said}`, { rpc_code: error.code })
    if (!(error instanceof SdkError)) return failed("upstream_error", `the server could not be used: ${said}`)
    switch (error.code) {
      case SdkErrorCode.RequestTimeout:
        return failed("timeout", `the server did not answer in time (${during}); nothing was committed`)
      case SdkErrorCode.InvalidResult:
        return failed("output_parse_failed", `the server's answer is none of the protocol: ${said}`)
      case SdkErrorCode.InputRequiredRoundsExceeded:
      case SdkErrorCode.UnsupportedResultType:
      case SdkErrorCode.CapabilityNotSupported:
        return failed(
          "upstream_error",
          elicit === undefined
            ? "the server asks a person for input, and nobody is there to be asked"
            : `the server asks for what this host does not give: ${said}`,
          {},
          "make the call where somebody can answer, or give the server all it needs with the input",
        )
      case SdkErrorCode.EraNegotiationFailed:
        if (this.#transport.left === true) return gone()
        return failed("upstream_error", `the server speaks no protocol that this host does: ${said}`)
      default:
        return gone()
    }
  }
}
