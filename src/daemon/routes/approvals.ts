/**
 * `/v1/approvals`: calls whose effects are held, and calls that may not run before somebody says yes; the answer about one.
 *
 * Guarantees: an answer counts from who may give it, and commits exactly the layer that was shown, or nothing of it; about a
 * call that was not run it lets that very call be made once.
 */
import { processCaller } from "../../host/access/caller.ts"
import type { DecideOptions, Envelope } from "../../host/types.ts"
import { noCallError, problemOf, problemType, refuse, statusOfEnvelope } from "../http/problem.ts"
import {
  closed,
  contentChange,
  count,
  envelopes,
  flag,
  idParams,
  listOf,
  moment,
  object,
  open,
  problems,
  text,
} from "../http/schemas.ts"
import type { Routes } from "./context.ts"

const approval = {
  id: text,
  tool: text,
  driver: text,
  user: text,
  workspace: text,
  approval: text,
  held: moment,
  expires: moment,
  changes: count,
  bytes: count,
}
/** of a call that was not run */
const about = { enum: ["call"], description: "nothing was run: may the call be made? absent: about what it changed" }
const listed = open({ ...approval, about }, Object.keys(approval))
const detail = open(
  {
    ...approval,
    about,
    message: text,
    input: object,
    context: object,
    cost: object,
    intact: flag,
    mutates: listOf(text),
    effects: listOf(object),
    denied: listOf(object),
    content: listOf(contentChange),
  },
  [...Object.keys(approval), "intact", "effects", "denied", "content"],
)

/** Decided, and told to those whose it was: they may not be who decided. */
export const decideAsOthers = async (
  { host, changes }: Pick<Routes, "host" | "changes">,
  id: string,
  decision: "approve" | "deny",
  options: DecideOptions,
): Promise<Envelope> => {
  const { caller = processCaller() } = options
  const held = await host.approval(id, { caller })
  const told = await host.decide(id, decision, { ...options, caller })
  if (held !== undefined)
    changes.held({
      of: caller.tenant === undefined ? { user: held.user } : { tenant: caller.tenant, user: held.user },
      id,
    })
  return told
}

export const approvalRoutes = ({ app, host, callerOf, changes }: Routes): void => {
  app.get(
    "/v1/approvals",
    {
      schema: {
        operationId: "listApprovals",
        summary: "Calls that wait for an answer: about their effects, or before they run",
        tags: ["approvals"],
        response: {
          "200": { description: "held calls, the oldest first", ...open({ approvals: listOf(listed) }) },
          ...problems(),
        },
      },
    },
    async (request) => ({ approvals: await host.approvals({ caller: callerOf(request) }) }),
  )
  app.get(
    "/v1/approvals/:id",
    {
      schema: {
        operationId: "getApproval",
        summary: "One held call, with every effect, deletions first",
        tags: ["approvals"],
        params: idParams,
        response: { "200": { description: "the held call", ...detail }, ...problems() },
      },
    },
    async (request) => {
      const found = await host.approval((request.params as { id: string }).id, { caller: callerOf(request) })
      if (found === undefined) throw refuse("not_found", "there is no such held call", "GET /v1/approvals lists them")
      return found
    },
  )
  app.post(
    "/v1/approvals/:id",
    {
      schema: {
        operationId: "decideApproval",
        summary:
          "Commit exactly what was held, or throw it away; of a call that was not run: let it be made once, or not",
        tags: ["approvals"],
        params: idParams,
        body: closed(
          {
            decision: { enum: ["approve", "deny"] },
            reason: { type: "string", maxLength: 500, description: "why, for the receipt of the decision" },
          },
          ["decision"],
        ),
        response: envelopes("what became of the call"),
      },
    },
    async (request, reply) => {
      const { decision, ...more } = request.body as { decision: "approve" | "deny"; reason?: string }
      const { id } = request.params as { id: string }
      const told = await decideAsOthers({ host, changes }, id, decision, { ...more, caller: callerOf(request) })
      const none = noCallError(told)
      if (none !== undefined) return reply.type(problemType).code(statusOfEnvelope(told)).send(problemOf(none))
      // A no that was taken is no failure of the request.
      const isTaken = decision === "deny" && !told.ok && told.error.code === "approval_denied"
      return reply.code(isTaken ? 200 : statusOfEnvelope(told)).send(told)
    },
  )
}
