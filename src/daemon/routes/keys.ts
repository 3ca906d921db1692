/** `/v1/tokens` and `/v1/secrets`: who may knock, and what tools are lent. A secret's value goes in and never comes out. */
import type { SecretOptions, TokenOptions } from "../../host/types.ts"
import { orProblem } from "../http/problem.ts"
import { closed, flag, idParams, listOf, moment, name, object, open, problems, text } from "../http/schemas.ts"
import type { Routes } from "./context.ts"

const workspaces = { oneOf: [{ const: "any" }, { type: "array", items: text }] }
const token = {
  id: text,
  tenant: text,
  user: text,
  label: text,
  agent: flag,
  workspaces,
  roles: listOf(text),
  made: moment,
  by: text,
  expires: moment,
  revoked: moment,
}
const always = ["id", "tenant", "user", "label", "agent", "workspaces", "roles", "made", "by"]
const gone = { "204": { description: "done", type: "null" } }

export const tokenRoutes = ({ app, host, callerOf, changes }: Routes): void => {
  const tags = ["tokens"]
  app.get(
    "/v1/tokens",
    {
      schema: {
        operationId: "listTokens",
        summary: "Tokens, without what they open with",
        tags,
        querystring: closed({ tenant: name }),
        response: { "200": { description: "tokens", ...open({ tokens: listOf(open(token, always)) }) }, ...problems() },
      },
    },
    async (request) => {
      const asked = request.query as { readonly tenant?: string }
      return { tokens: orProblem(await host.tokens.list({ ...asked, caller: callerOf(request) })).value }
    },
  )
  app.post(
    "/v1/tokens",
    {
      schema: {
        operationId: "createToken",
        summary: "A new token; what it opens with is told here and never again",
        tags,
        body: closed({
          user: name,
          tenant: name,
          label: { type: "string", maxLength: 200 },
          agent: { type: "boolean", description: "made for a program: it can never approve. Default: true" },
          workspaces: { oneOf: [{ const: "any" }, { type: "array", maxItems: 256, items: name }] },
          roles: { type: "array", maxItems: 8, items: { enum: ["caller", "approver", "operator", "act-for", "pin"] } },
          days: { type: "number", exclusiveMinimum: 0, maximum: 366 },
        }),
        response: {
          "201": { description: "the token", ...open({ ...token, token: text }, [...always, "token"]) },
          ...problems(),
        },
      },
    },
    async (request, reply) => {
      const made = orProblem(await host.tokens.issue({ ...(request.body as TokenOptions), caller: callerOf(request) }))
      return reply.code(201).header("cache-control", "no-store").send(made.value)
    },
  )
  app.delete(
    "/v1/tokens/:id",
    {
      schema: {
        operationId: "revokeToken",
        summary: "A token that opens nothing from now on",
        tags,
        params: idParams,
        querystring: closed({ tenant: name }),
        response: { ...gone, ...problems() },
      },
    },
    async (request, reply) => {
      const asked = request.query as { readonly tenant?: string }
      const { id } = request.params as { id: string }
      orProblem(await host.tokens.revoke(id, { ...asked, caller: callerOf(request) }))
      changes.revoked()
      return reply.code(204).send()
    },
  )
}

const scope = { user: name, shared: flag, workspace: name, driver: name }

export const secretRoutes = ({ app, host, callerOf }: Routes): void => {
  const tags = ["secrets"]
  app.get(
    "/v1/secrets",
    {
      schema: {
        operationId: "listSecrets",
        summary: "Names and scopes of secrets",
        tags,
        response: { "200": { description: "names", ...open({ secrets: listOf(object) }) }, ...problems() },
      },
    },
    async (request) => ({ secrets: orProblem(await host.secrets.list({ caller: callerOf(request) })).value }),
  )
  app.post(
    "/v1/secrets",
    {
      schema: {
        operationId: "setSecret",
        summary: "Keep a secret, or another value of one",
        tags,
        body: closed({ slug: name, value: { type: "string", minLength: 1, maxLength: 65_536 }, ...scope }, [
          "slug",
          "value",
        ]),
        response: { ...gone, ...problems() },
      },
    },
    async (request, reply) => {
      const { slug, value, ...where } = request.body as { slug: string; value: string } & SecretOptions
      orProblem(await host.secrets.set(slug, value, { ...where, caller: callerOf(request) }))
      return reply.code(204).send()
    },
  )
  app.delete(
    "/v1/secrets/:id",
    {
      schema: {
        operationId: "removeSecret",
        summary: "Forget a secret",
        tags,
        params: idParams,
        querystring: closed(scope),
        response: { "200": { description: "whether there was one", ...open({ removed: flag }) }, ...problems() },
      },
    },
    async (request) => {
      const where = request.query as SecretOptions
      const { id } = request.params as { id: string }
      return { removed: orProblem(await host.secrets.remove(id, { ...where, caller: callerOf(request) })).value }
    },
  )
}
