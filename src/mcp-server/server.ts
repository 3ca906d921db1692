/**
 * The catalogue as an MCP server, for one caller: the same host, the same authorization, the same receipts.
 *
 * Guarantees: a client sees the tools that its caller may use, or, where they are too many, three that find, describe and
 * call them; prompts and resources are contracts that say so. Cancelling a request cancels its call. Nothing of a client's
 * words decides who it is.
 */
import {
  type ListResourcesResult,
  MissingRequiredClientCapabilityError,
  ProtocolError,
  ProtocolErrorCode,
  type Result,
  Server,
  type ServerContext,
  type ServerOptions,
} from "@modelcontextprotocol/server"
import type { Caller } from "../host/access/caller.ts"
import type { Host } from "../host/types.ts"
import type { JsonObject } from "../manifest/types.ts"
import { canServe, canServeIn, type Catalogue, catalogueOf, type Entry } from "./catalogue/catalogue.ts"
import { complete } from "./catalogue/completing.ts"
import { find, finders, isFinder } from "./catalogue/finding.ts"
import { toolOf } from "./catalogue/tools.ts"
import { callTool } from "./calls/calling.ts"
import type { Logins } from "./calls/login.ts"
import { reachOf, TASKS } from "./calls/reach.ts"
import type { Runs } from "./calls/runs.ts"
import { type States, whoseOf } from "./calls/states.ts"
import { type CreatedTask, isCreatedTask, taskOf } from "./calls/task.ts"
import { mcpLimits } from "./limits.ts"
import { pageOf } from "./page.ts"
import { getPrompt, promptOf } from "./prompts.ts"
import { readResource, resourcesOf, templatesOf } from "./resources.ts"

export interface McpOptions {
  readonly host: Pick<Host, "tools" | "call" | "approval" | "approvals" | "decide" | "recorded" | "receipts" | "login">
  readonly caller: Caller
  readonly version: string
  readonly states: States
  readonly runs: Runs
  readonly logins: Logins
  /** the folder of every call; absent: calls run in an empty one */
  readonly workspace?: string
  readonly empty?: string
  /** addresses that a client of the old era watches; absent: it is of the new one, which subscribes otherwise */
  readonly watched?: Set<string>
  /** only tools with one of these tags */
  readonly tags?: readonly string[]
  /** show three tools that find, describe and call the rest */
  readonly finds?: boolean
}

/** The library knows no tasks: a call that became one passes by what it would make of a result. */
class TaskServer extends Server {
  protected override _wrapHandler(
    method: string,
    handler: Parameters<Server["_wrapHandler"]>[1],
  ): ReturnType<Server["_wrapHandler"]> {
    if (method !== "tools/call") return super._wrapHandler(method, handler)
    return async (request, ctx) => {
      let task: CreatedTask | undefined
      const wrapped = super._wrapHandler(method, async (given, within) => {
        const answer = await handler(given, within)
        if (!isCreatedTask(answer)) return answer
        task = answer
        return { content: [] } as Result
      })
      const answer = await wrapped(request, ctx)
      return (task as Result | undefined) ?? answer
    }
  }
}

type Params = Readonly<Record<string, unknown>>
/** Any object: what is in it is looked at where it is used. */
const anyParams = {
  params: {
    "~standard": {
      version: 1,
      vendor: "caisson",
      validate: (value: unknown) =>
        typeof value === "object" && value !== null
          ? { value: value as Params }
          : { issues: [{ message: "params is no object" }] },
    },
  },
} as const

const serveTasks = (server: Server, { runs, caller }: McpOptions): void => {
  const whose = whoseOf(caller)
  const handle = (method: string, answer: (id: string, answers: Params) => Result): void =>
    server.setRequestHandler(method, anyParams, async (given, ctx: ServerContext) => {
      if (!reachOf(server, ctx).tasks)
        throw new MissingRequiredClientCapabilityError({ requiredCapabilities: { extensions: { [TASKS]: {} } } })
      const { taskId } = given as Params
      // Answers are taken out of the parameters of every request.
      return answer(typeof taskId === "string" ? taskId : "", ctx.mcpReq.inputResponses ?? {})
    })
  const found = (id: string) => {
    const run = runs.find(id, whose)
    if (run !== undefined) return run
    throw new ProtocolError(ProtocolErrorCode.InvalidParams, "there is no such task")
  }
  handle("tasks/get", (id) => taskOf(found(id)) as Result)
  handle("tasks/cancel", (id) => {
    found(id).cancel()
    return {}
  })
  handle("tasks/update", (id, answers) => {
    found(id).answer(answers)
    return {}
  })
}

const serveWatching = (server: Server, watched: Set<string>): void => {
  server.setRequestHandler("resources/subscribe", ({ params: { uri } }) => {
    if (watched.size >= mcpLimits.subscriptionsOfOne.value)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, "too many addresses are watched in this session")
    watched.add(uri.slice(0, mcpLimits.questionChars.value))
    return {}
  })
  server.setRequestHandler("resources/unsubscribe", ({ params: { uri } }) => {
    watched.delete(uri)
    return {}
  })
}

const INSTRUCTIONS =
  "Each tool runs sealed: what it may reach and change is in its contract, and anything else is stopped and undone. Results name effects, denials and a receipt. A tool that answers `approval_required` waits for a person: it has run and its effects are held, or, where it says that nothing was run, the same call is to be made again once somebody said yes."

const optionsOf = (states: States): ServerOptions => ({
  capabilities: {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true, subscribe: true },
    completions: {},
    logging: {},
    extensions: { [TASKS]: {} },
  },
  instructions: INSTRUCTIONS,
  inputRequired: { maxRounds: mcpLimits.rounds.value * 2, roundTimeoutMs: mcpLimits.askMs.value },
  requestState: { verify: (state, ctx) => states.verify(state, ctx) },
})

const serveTools = (server: Server, options: McpOptions, catalogue: () => Promise<Catalogue>): void => {
  const { finds = false, workspace } = options
  const fits = canServeIn(workspace)
  const listed = async () => [...(await catalogue()).tools.values()].filter(fits).map(toolOf)
  server.setRequestHandler("tools/list", async ({ params }) => {
    const { page, nextCursor } = pageOf(finds ? finders : await listed(), ({ name }) => name, params?.cursor)
    return { tools: page, ...(nextCursor === undefined ? {} : { nextCursor }) }
  })
  server.setRequestHandler("tools/call", async (request, ctx) => {
    const { name, arguments: given = {} } = request.params
    const { tools } = await catalogue()
    const none = (): never => {
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, `there is no tool ${name.slice(0, 100)}`)
    }
    const go = (entry: Entry, input: JsonObject) =>
      callTool(options, entry, input, server, request, ctx) as Promise<never>
    if (finds) {
      const found = isFinder(name) ? find(tools, name, given, fits) : none()
      return "content" in found ? found : go(found.entry, found.input)
    }
    return go(tools.get(name) ?? none(), given as JsonObject)
  })
}

export const createMcpServer = (options: McpOptions): Server => {
  const { version, states, host, caller, tags } = options
  const server = new TaskServer({ name: "caisson", title: "Caisson", version }, optionsOf(states))
  const catalogue = async (): Promise<Catalogue> => catalogueOf(await host.tools({ caller }), tags)
  serveTools(server, options, catalogue)
  server.setRequestHandler("prompts/list", async ({ params }) => {
    const prompts = [...(await catalogue()).prompts.values()].filter(canServe).map(promptOf)
    const { page, nextCursor } = pageOf(prompts, ({ name }) => name, params?.cursor)
    return { prompts: page, ...(nextCursor === undefined ? {} : { nextCursor }) }
  })
  server.setRequestHandler("prompts/get", async (request, ctx) =>
    getPrompt(options, (await catalogue()).prompts.get(request.params.name), server, request, ctx),
  )
  server.setRequestHandler("resources/list", async ({ params }): Promise<ListResourcesResult> => {
    const resources = await resourcesOf(host, caller, await catalogue())
    const { page, nextCursor } = pageOf(resources, ({ uri }) => uri, params?.cursor)
    return { resources: page, ...(nextCursor === undefined ? {} : { nextCursor }) }
  })
  server.setRequestHandler("resources/read", ({ params }, ctx) =>
    readResource(options, catalogue, params.uri, server, ctx),
  )
  server.setRequestHandler("resources/templates/list", async () => ({
    resourceTemplates: templatesOf(await catalogue()),
  }))
  server.setRequestHandler("completion/complete", async ({ params: { ref, argument } }) => {
    const { prompts, resources } = await catalogue()
    const entry = ref.type === "ref/prompt" ? prompts.get(ref.name) : resources.get(ref.uri)
    return complete(entry, argument.name, argument.value)
  })
  serveTasks(server, options)
  if (options.watched !== undefined) serveWatching(server, options.watched)
  return server
}
