/**
 * `/v1/grants`: a person's yes beforehand, to so many calls of one tool, until a moment.
 *
 * Guarantees: who may give, see and revoke one is the host's to say; a token made for an agent gives none.
 */
import type { GrantOptions } from "../../host/types.ts"
import { orProblem } from "../http/problem.ts"
import { closed, count, flag, idParams, listOf, moment, name, open, problems, text } from "../http/schemas.ts"
import type { Routes } from "./context.ts"

const grant = {
  id: text,
  tenant: text,
  user: text,
  tool: text,
  workspace: text,
  uses: count,
  used: count,
  made: moment,
  by: text,
  expires: moment,
  revoked: moment,
  reason: text,
  good: flag,
}
const form = open(
  grant,
  Object.keys(grant).filter((key) => key !== "revoked"),
)

export const grantRoutes = ({ app, host, callerOf }: Routes): void => {
  const tags = ["grants"]
  app.get(
    "/v1/grants",
    {
      schema: {
        operationId: "listGrants",
        summary: "Grants, those that end first before the others",
        tags,
        response: { "200": { description: "grants", ...open({ grants: listOf(form) }) }, ...problems() },
      },
    },
    async (request) => ({ grants: orProblem(await host.grants.list({ caller: callerOf(request) })).value }),
  )
  app.post(
    "/v1/grants",
    {
      schema: {
        operationId: "createGrant",
        summary: "A yes beforehand: this tool, on this workspace, so many times, until then",
        tags,
        body: closed(
          {
            tool: { ...name, description: "`id`, or `id@major`" },
            user: { ...name, description: "for whose calls; another user's takes the role approver" },
            workspace: { ...name, description: "absolute path of a folder, or `any`" },
            uses: { type: "integer", minimum: 1, maximum: 10_000, description: "default: 1" },
            until: { ...name, description: "a moment; else `days`" },
            days: { type: "number", exclusiveMinimum: 0, maximum: 366, description: "default: 1" },
            reason: { type: "string", maxLength: 500 },
          },
          ["tool", "workspace"],
        ),
        response: { "201": { description: "the grant", ...form }, ...problems(422) },
      },
    },
    async (request, reply) => {
      const made = orProblem(await host.grants.create({ ...(request.body as GrantOptions), caller: callerOf(request) }))
      return reply.code(201).send(made.value)
    },
  )
  app.delete(
    "/v1/grants/:id",
    {
      schema: {
        operationId: "revokeGrant",
        summary: "A grant that answers nothing from now on",
        tags,
        params: idParams,
        response: { "204": { description: "done", type: "null" }, ...problems() },
      },
    },
    async (request, reply) => {
      orProblem(await host.grants.revoke((request.params as { id: string }).id, { caller: callerOf(request) }))
      return reply.code(204).send()
    },
  )
}
