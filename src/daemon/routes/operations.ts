/** `/healthz`, `/metrics`, `/v1/reload`: for whoever runs the daemon, and nothing of its users in them. */
import { type Caller, isOperator } from "../../host/access/caller.ts"
import type { ReloadReport } from "../../host/types.ts"
import type { Health } from "../ops/health.ts"
import type { Metrics } from "../ops/metrics.ts"
import { orProblem, refuse } from "../http/problem.ts"
import { count, flag, listOf, open, problems, text } from "../http/schemas.ts"
import type { Routes } from "./context.ts"

const health = open({
  status: { enum: ["ok", "degraded", "unready"] },
  live: { const: true },
  ready: flag,
  causes: listOf(open({ cause: text, message: text, fix: text })),
})

export interface OperationParts {
  readonly health: Health
  readonly metrics: Metrics
  readonly reload: (caller: Caller) => Promise<ReloadReport>
  /** may anybody read metrics over TCP? */
  readonly isOpen: () => boolean
}

export const operationRoutes = (
  { app, callerOf }: Routes,
  { health: state, metrics, reload, isOpen }: OperationParts,
): void => {
  const tags = ["daemon"]
  app.get(
    "/healthz",
    {
      schema: {
        operationId: "health",
        summary: "Whether the daemon lives and can serve; `?ready` answers 503 where it cannot",
        tags,
        security: [],
        querystring: {
          type: "object",
          additionalProperties: false,
          properties: { ready: { type: "string", maxLength: 8 } },
        },
        response: {
          ...problems(),
          "200": { description: "it lives", ...health },
          "503": { description: "it cannot serve now", ...health },
        },
      },
    },
    async (request, reply) => {
      const report = await state.report()
      metrics.ready(report.ready)
      const isAsked = "ready" in (request.query as { readonly ready?: string })
      return reply
        .header("cache-control", "no-store")
        .code(isAsked && !report.ready ? 503 : 200)
        .send(report)
    },
  )
  app.get(
    "/metrics",
    {
      schema: {
        operationId: "metrics",
        summary: "Prometheus metrics; over TCP for operators, unless `serve.metrics` is open",
        tags,
        response: {
          "200": { description: "metrics", content: { "text/plain": { schema: text } } },
          ...problems(),
        },
      },
    },
    async (request, reply) => {
      if (!isOpen() && !isOperator(callerOf(request)))
        throw refuse("unauthorised", "metrics are for operators", "use a token with the role `operator`")
      const written = await metrics.text()
      return reply.header("cache-control", "no-store").type(metrics.contentType).serializer(String).send(written)
    },
  )
  app.post(
    "/v1/reload",
    {
      schema: {
        operationId: "reload",
        summary: "Manifests and config, read again: taken whole for calls from now on, or not at all; for operators",
        tags,
        response: {
          "200": { description: "taken", ...open({ generation: count, tools: count, drivers: count }) },
          ...problems(422),
        },
      },
    },
    async (request) => {
      const { generation, tools, drivers } = orProblem(await reload(callerOf(request)))
      return { generation, tools, drivers }
    },
  )
}
