/**
 * `/mcp`: the catalogue for MCP clients, over streamable HTTP.
 *
 * Guarantees: the same caller, the same authorization and the same limits as every other route. `?workspace=DIR` names the
 * folder of its calls, `?tag=…` and `?find` choose what a client sees.
 */
import { closed, problems, text } from "../http/schemas.ts"
import { refuse } from "../http/problem.ts"
import type { McpChoice, McpHost, McpOverHttp } from "../../mcp-server/http.ts"
import { daemonLimits } from "../limits.ts"
import { decideAsOthers } from "./approvals.ts"
import type { Caller } from "../../host/access/caller.ts"
import type { Routes } from "./context.ts"

interface Query {
  readonly workspace?: string
  readonly tag?: string
  readonly find?: string
}

const choiceOf = ({ workspace, tag, find }: Query, caller: Caller): McpChoice => {
  if (workspace !== undefined && !workspace.startsWith("/"))
    throw refuse("input_invalid", "`workspace` is not an absolute path", "name the folder from the root")
  const own = caller.workspaces !== "any" && caller.workspaces.length === 1 ? caller.workspaces[0] : undefined
  const named = workspace ?? own
  return {
    ...(named === undefined ? {} : { workspace: named }),
    ...(tag === undefined ? {} : { tags: tag.split(",") }),
    ...(find === undefined ? {} : { finds: true }),
  }
}

/** The same host; calls begin and end as those of every other route, within the same bounds. */
const asOthers = ({ host, calls, changes }: Pick<Routes, "host" | "calls" | "changes">): McpHost => ({
  ...host,
  decide: async (id, answer, options = {}) => decideAsOthers({ host, changes }, id, answer, options),
  call: async (request, { caller, signal, onEvent, empty, elicit, approve } = {}) => {
    if (caller === undefined) throw new Error("an exchange without a caller")
    const wishes = {
      ...(empty === undefined ? {} : { empty }),
      ...(elicit === undefined ? {} : { elicit }),
      ...(approve === undefined ? {} : { approve }),
    }
    const begun = await calls.begin(request, caller, wishes, onEvent)
    if (signal?.aborted === true) begun.cancel()
    signal?.addEventListener("abort", begun.cancel, { once: true })
    try {
      return await begun.envelope
    } finally {
      signal?.removeEventListener("abort", begun.cancel)
    }
  },
})

export const mcpRoutes = ({ app, host, calls, empty, callerOf, version, changes, onFault }: Routes): void => {
  let opened: Promise<McpOverHttp> | undefined
  /** The protocol's library is a third of the daemon's code: it is loaded for the first client that speaks it. */
  const mcp = (): Promise<McpOverHttp> =>
    (opened ??= import("../../mcp-server/http.ts").then(({ createMcpOverHttp }) =>
      createMcpOverHttp({ host: asOthers({ host, calls, changes }), version, empty, onFault }),
    ))
  changes.onReload(() => void opened?.then((served) => served.changed()))
  changes.onHeld(({ of, id }) => void opened?.then((served) => served.held(of, id)))
  app.addHook("onClose", async () => (await opened)?.[Symbol.asyncDispose]())
  app.register(async (scope) => {
    // An end of a session has no body, and clients say of it that it is JSON all the same.
    const parse = scope.getDefaultJsonParser("error", "error")
    scope.removeContentTypeParser("application/json")
    scope.addContentTypeParser("application/json", { parseAs: "string" }, (request, body, done) =>
      body === "" ? done(null) : parse(request, body as string, done),
    )
    scope.route({
      method: ["GET", "POST", "DELETE"],
      url: "/mcp",
      bodyLimit: daemonLimits.callBytes.value,
      schema: {
        hide: true,
        querystring: closed({ workspace: text, tag: text, find: text }),
        response: problems(),
      },
      handler: async (request, reply) => {
        const caller = callerOf(request)
        const choice = choiceOf(request.query as Query, caller)
        const { serve } = await mcp()
        reply.hijack()
        await serve(request.raw, reply.raw, caller, choice, request.body)
        return await reply
      },
    })
  })
}
