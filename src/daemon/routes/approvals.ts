/**
 * `/v1/approvals`: calls whose effects are held, and the answer about one.
 *
 * Guarantees: an answer counts from who may give it, and commits exactly the layer that was shown, or nothing of it.
 */
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
const detail = open(
  {
    ...approval,
    intact: flag,
    mutates: listOf(text),
    effects: listOf(object),
    denied: listOf(object),
    content: listOf(contentChange),
  },
  [...Object.keys(approval), "intact", "effects", "denied", "content"],
)

export const approvalRoutes = ({ app, host, callerOf }: Routes): void => {
  app.get(
    "/v1/approvals",
    {
      schema: {
        operationId: "listApprovals",
        summary: "Calls that wait for an answer about their effects",
        tags: ["approvals"],
        response: {
          "200": { description: "held calls, the oldest first", ...open({ approvals: listOf(open(approval)) }) },
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
        summary: "Commit exactly what was held, or throw it away",
        tags: ["approvals"],
        params: idParams,
        body: closed({ decision: { enum: ["approve", "deny"] } }, ["decision"]),
        response: envelopes("what became of the call"),
      },
    },
    async (request, reply) => {
      const { decision } = request.body as { decision: "approve" | "deny" }
      const told = await host.decide((request.params as { id: string }).id, decision, { caller: callerOf(request) })
      const none = noCallError(told)
      if (none !== undefined) return reply.type(problemType).code(statusOfEnvelope(told)).send(problemOf(none))
      // A no that was taken is no failure of the request.
      const isTaken = decision === "deny" && !told.ok && told.error.code === "approval_denied"
      return reply.code(isTaken ? 200 : statusOfEnvelope(told)).send(told)
    },
  )
}
