/**
 * The catalogue as an MCP server, for one caller: the same host, the same authorization, the same receipts.
 *
 * Guarantees: a client sees the tools that its caller may use, or, where they are too many, three that find, describe and
 * call them. Cancelling a request cancels its call. Effects that need a yes are asked about by elicitation where the client
 * can and the caller may approve; else, and always beside it, the call is held under its id. Nothing of a client's words decides who it is.
 */
import {
  type CallToolRequest,
  type CallToolResult,
  type InputRequiredResult,
  ProtocolError,
  ProtocolErrorCode,
  Server,
  type ServerContext,
  type Tool,
} from "@modelcontextprotocol/server"
import type { Caller } from "../host/access/caller.ts"
import type { CallEvent } from "../host/events.ts"
import type { CallRequest, Envelope, Host, ToolListing } from "../host/types.ts"
import type { JsonValue } from "../manifest/types.ts"
import { answerIn, canAsk, heldIn, type HeldState, question, type States } from "./asking.ts"
import { mcpLimits } from "./limits.ts"
import { listResources, readResource } from "./resources.ts"
import { isFinder, finders, find } from "./finding.ts"
import { resultOf, toolOf } from "./tools.ts"

export interface McpOptions {
  readonly host: Pick<Host, "tools" | "call" | "approval" | "approvals" | "decide" | "recorded">
  readonly caller: Caller
  readonly version: string
  readonly states: States
  /** the folder of every call; absent: calls run in an empty one */
  readonly workspace?: string
  readonly empty?: string
  /** only tools with one of these tags */
  readonly tags?: readonly string[]
  /** show three tools that find, describe and call the rest */
  readonly finds?: boolean
}

/** By name; of several majors the highest, which is what the name alone means. */
const newest = (listings: readonly ToolListing[]): ReadonlyMap<string, ToolListing> => {
  const of = new Map<string, ToolListing>()
  for (const listing of listings) {
    const { id, major } = listing.contract
    if ((of.get(id)?.contract.major ?? -1) < major) of.set(id, listing)
  }
  return of
}

const toolsFor = async ({ host, caller, tags }: McpOptions): Promise<ReadonlyMap<string, ToolListing>> => {
  const listings = await host.tools({ caller })
  const wanted =
    tags === undefined ? listings : listings.filter(({ contract }) => contract.tags.some((tag) => tags.includes(tag)))
  return new Map([...newest(wanted)].sort(([one], [other]) => (one < other ? -1 : 1)))
}

/** What can be served now: a tool whose drivers are all away would only fail. */
const listed = (tools: ReadonlyMap<string, ToolListing>): Tool[] =>
  [...tools.values()]
    .filter(({ availability }) => availability.available || isWaiting(availability.code))
    .map(({ contract }) => toolOf(contract))
const isWaiting = (code: string): boolean => ["auth_required", "setup_required"].includes(code)

/** Where a page begins; a cursor is the name that it begins after. */
const pageOf = (tools: readonly Tool[], cursor: string | undefined): { tools: Tool[]; nextCursor?: string } => {
  const after = cursor === undefined ? undefined : Buffer.from(cursor, "base64url").toString("utf8")
  const rest = after === undefined ? tools : tools.filter(({ name }) => name > after)
  const page = rest.slice(0, mcpLimits.page.value)
  const last = page.at(-1)
  if (last === undefined || rest.length <= page.length) return { tools: page }
  return { tools: page, nextCursor: Buffer.from(last.name).toString("base64url") }
}

/** Word of how far the call is, for a client that asked for it. */
const progressTo = (ctx: ServerContext): ((event: CallEvent) => void) | undefined => {
  const token = ctx.mcpReq._meta?.progressToken
  if (token === undefined) return undefined
  let progress = 0
  let last = 0
  return (event) => {
    const now = performance.now()
    if (event.type === "output" && now - last < mcpLimits.progressMs.value) return
    last = now
    progress += 1
    void ctx.mcpReq
      .notify({ method: "notifications/progress", params: { progressToken: token, progress, message: event.type } })
      .catch(() => undefined)
  }
}

type Answer = CallToolResult | InputRequiredResult

const make = async (options: McpOptions, request: CallRequest, ctx: ServerContext): Promise<Envelope> => {
  const { host, caller, workspace, empty } = options
  const onEvent = progressTo(ctx)
  return await host.call(workspace === undefined ? request : { ...request, workspace }, {
    caller,
    signal: ctx.mcpReq.signal,
    ...(empty === undefined ? {} : { empty }),
    ...(onEvent === undefined ? {} : { onEvent }),
  })
}

const decided = async (
  { host, caller }: McpOptions,
  { held, actor }: HeldState,
  ctx: ServerContext,
): Promise<Answer> => {
  if (actor !== caller.actor) throw new ProtocolError(ProtocolErrorCode.InvalidParams, "this state is another caller's")
  const keep = answerIn(ctx)
  if (keep !== undefined) return resultOf(await host.decide(held, keep ? "approve" : "deny", { caller }))
  const record = await host.approval(held, { caller })
  return {
    isError: true,
    content: [
      {
        type: "text",
        text: `approval_required: nobody answered; the effects are held until ${record?.expires ?? "they expire"}\nhint: \`caisson approvals show ${held}\``,
      },
    ],
  }
}

const callTool = async (
  options: McpOptions,
  server: Server,
  request: CallToolRequest,
  ctx: ServerContext,
): Promise<Answer> => {
  const { host, caller, states, finds = false } = options
  const state = ctx.mcpReq.requestState<HeldState>()
  if (state !== undefined) return decided(options, state, ctx)
  const { name, arguments: input = {} } = request.params
  let asked: CallRequest = { tool: name, input: input as JsonValue }
  if (finds) {
    if (!isFinder(name))
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is no tool ${name.slice(0, 100)}`)
    const found = find(await toolsFor(options), name, input)
    if ("content" in found) return found
    asked = found
  } else if (!(await toolsFor(options)).has(name))
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is no tool ${name.slice(0, 100)}`)
  const envelope = await make(options, asked, ctx)
  const held = heldIn(envelope)
  if (held === undefined || !caller.mayApprove || !canAsk(server, ctx)) return resultOf(envelope)
  const detail = await host.approval(held, { caller })
  return detail === undefined || !detail.intact ? resultOf(envelope) : question(states, detail, caller.actor, ctx)
}

export const createMcpServer = (options: McpOptions): Server => {
  const { version, states, finds = false } = options
  const server = new Server(
    { name: "caisson", title: "Caisson", version },
    {
      capabilities: { tools: { listChanged: true }, resources: {} },
      instructions:
        "Each tool runs sealed: what it may reach and change is in its contract, and anything else is stopped and undone. Results name effects, denials and a receipt.",
      requestState: { verify: (state, ctx) => states.verify(state, ctx) },
    },
  )
  server.setRequestHandler("tools/list", async ({ params }) =>
    pageOf(finds ? finders : listed(await toolsFor(options)), params?.cursor),
  )
  server.setRequestHandler("tools/call", (request, ctx) => callTool(options, server, request, ctx))
  server.setRequestHandler("resources/list", () => listResources(options.host, options.caller))
  server.setRequestHandler("resources/read", ({ params }) => readResource(options.host, options.caller, params.uri))
  server.setRequestHandler("resources/templates/list", () => ({
    resourceTemplates: [
      {
        uriTemplate: "caisson://calls/{call}",
        name: "call",
        description: "what a call answered, with effects, denials and receipt",
        mimeType: "application/json",
      },
      {
        uriTemplate: "caisson://approvals/{call}",
        name: "held call",
        description: "what a held call would change",
        mimeType: "application/json",
      },
    ],
  }))
  return server
}
