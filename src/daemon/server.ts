/**
 * The API as one Fastify application, without a listener of its own.
 *
 * Guarantees: every request is authenticated before a route sees it, but for `/healthz` and the document; a body is valid
 * against the very schema that the document shows; no value is coerced, filled in or left out on the way. What nobody
 * foresaw is answered as `internal`, without a word of the host's, and ends nothing.
 */
import type { IncomingMessage } from "node:http"
import { pipeline } from "node:stream"
import fastify, { type FastifyInstance, type FastifyRequest, type FastifyServerOptions } from "fastify"
import swagger from "@fastify/swagger"
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js"
import addFormats from "ajv-formats"
import { type Caller, tenantOf } from "../host/access/caller.ts"
import type { Host } from "../host/types.ts"
import type { CallsUnderWay } from "./calls-under-way.ts"
import { createAuthenticate, type Knocks, tokenIn } from "./http/authenticate.ts"
import { Bodies, type BodyPlace, counted } from "./http/bodies.ts"
import type { Connections } from "./http/connections.ts"
import type { Standing } from "./http/standing.ts"
import { isKnownHost, isKnownOrigin, type KnownNames } from "./http/origin.ts"
import { problemType, refuse, thrownProblem, addressProblem } from "./http/problem.ts"
import { problems, sharedSchemas } from "./http/schemas.ts"
import { daemonLimits } from "./limits.ts"
import type { Changes } from "./events/changes.ts"
import type { DaemonLog } from "./ops/log.ts"
import type { Places } from "./ops/places.ts"
import { approvalRoutes } from "./routes/approvals.ts"
import { callRoutes } from "./routes/calls.ts"
import { catalogueRoutes } from "./routes/catalogue.ts"
import { grantRoutes } from "./routes/grants.ts"
import { questionRoutes } from "./routes/questions.ts"
import { mcpRoutes } from "./routes/mcp.ts"
import { installRoutes } from "./routes/installs.ts"
import { loginRoutes } from "./routes/logins.ts"
import { Jobs } from "./jobs.ts"
import { secretRoutes, tokenRoutes } from "./routes/keys.ts"
import { operationRoutes, type OperationParts } from "./routes/operations.ts"
import { receiptRoutes } from "./routes/receipts.ts"

type BuildValidator = NonNullable<
  NonNullable<NonNullable<FastifyServerOptions["schemaController"]>["compilersFactory"]>["buildValidator"]
>

interface ServerParts {
  readonly host: Host
  readonly calls: CallsUnderWay
  readonly knocks: Knocks
  /** of the port, where there is one */
  readonly connections: Connections
  readonly standing: Standing
  /** asked for each time: they may be changed */
  readonly names: () => KnownNames
  readonly streams: Places
  readonly version: string
  /** where calls that name no workspace run */
  readonly empty: string
  readonly log: DaemonLog
  readonly operations: OperationParts
  readonly changes: Changes
  /** hears of what nobody foresaw */
  readonly onFault: (error: unknown) => void
}

const OPEN_TO_ALL = new Set(["/healthz", "/openapi.json"])

/**
 * Text of an address or a header becomes a number where that is asked for; a body is taken as it is. Compiled by the first
 * request that needs it: all at once would be a third of what a start takes.
 */
const compilers = () => {
  // What routes ask for is our own word, and held to the rules of schemas by the test of the document.
  const options = { strict: false, allErrors: true, removeAdditional: false, validateSchema: false } as const
  const made = (coerceTypes: boolean): Ajv2020 => {
    const ajv = new Ajv2020({ ...options, coerceTypes })
    addFormats.default(ajv)
    for (const schema of sharedSchemas()) ajv.addSchema(schema)
    return ajv
  }
  let exact: Ajv2020 | undefined
  let lenient: Ajv2020 | undefined
  const judgeOf = (schema: object, httpPart: string | undefined): ValidateFunction =>
    (httpPart === "body" ? (exact ??= made(false)) : (lenient ??= made(true))).compile(schema)
  return ({ schema, httpPart }: { schema: unknown; httpPart?: string }) => {
    let judge: ValidateFunction | undefined
    return (data: unknown) => {
      judge ??= judgeOf(schema as object, httpPart)
      return judge(data) ? { value: data } : { error: judge.errors ?? [] }
    }
  }
}

/** What the document puts together. */
const groups = {
  calls: "tool calls: made, watched, ended",
  catalogue: "tools and drivers, and which would serve a call",
  approvals: "calls whose effects wait for an answer",
  logins: "drivers set up and signed in, and how that stands",
  grants: "what was allowed beforehand",
  tokens: "who may use this API",
  secrets: "what tools are lent, by name",
  installs: "packages of drivers",
  receipts: "the evidence of every call",
  daemon: "the daemon itself",
}

const describe = (app: FastifyInstance, version: string): void => {
  app.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "Caisson",
        version,
        description: "A sealed execution host for agent tools: calls, their effects and the evidence.",
        license: { name: "Apache-2.0", identifier: "Apache-2.0" },
      },
      servers: [{ url: "http://127.0.0.1:7433", description: "this machine" }],
      components: { securitySchemes: { token: { type: "http", scheme: "bearer" } } },
      security: [{ token: [] }],
      tags: Object.entries(groups).map(([name, description]) => ({ name, description })),
    },
    refResolver: {
      buildLocalReference: ({ $id }, _base, _fragment, index) => (typeof $id === "string" ? $id : `def-${index}`),
    },
  })
}

const isNamedTwice = ({ rawHeaders }: IncomingMessage): boolean =>
  rawHeaders.filter((name, at) => at % 2 === 0 && name.toLowerCase() === "host").length > 1

type Callers = WeakMap<FastifyRequest, Caller>

const secure = (app: FastifyInstance, parts: ServerParts, callers: Callers): ((request: FastifyRequest) => Caller) => {
  const authenticate = createAuthenticate(parts.host, parts.knocks)
  app.addHook("onRequest", async (request, reply) => {
    if (isNamedTwice(request.raw))
      throw refuse("input_invalid", "the request has more than one Host", "send one", {}, 400)
    if (!parts.knocks.isLocal(request.raw.socket)) {
      if (!isKnownHost(request.headers.host, parts.names()))
        throw refuse(
          "unauthorised",
          "this address is not one that the daemon goes by",
          "use 127.0.0.1, or name it in `serve.hosts` of caisson.yaml",
          {},
          421,
        )
      if (!isKnownOrigin(request.headers.origin, parts.names()))
        throw refuse(
          "unauthorised",
          "pages of other origins are not served",
          "name the origin in `serve.origins` of caisson.yaml",
          {},
          403,
        )
    }
    const { url = "" } = request.routeOptions
    if (OPEN_TO_ALL.has(url) || (url === "/metrics" && parts.operations.isOpen())) return
    const caller = await authenticate(request)
    callers.set(request, caller)
    const { socket } = request.raw
    if (parts.knocks.isLocal(socket)) return
    if (!parts.connections.isKnown(socket, { tenant: tenantOf(caller), user: caller.user }))
      throw refuse("overloaded", "this user has as many connections as one may", "use those that are there", {
        "retry-after": "5",
      })
    parts.standing.watch(reply.raw, tokenIn(request) ?? "")
  })
  return (request) => {
    const caller = callers.get(request)
    if (caller === undefined) throw new Error("a route was reached without a caller")
    return caller
  }
}

const isBodied = ({ headers }: FastifyRequest): boolean =>
  Number(headers["content-length"] ?? 0) > 0 || headers["transfer-encoding"] !== undefined

/** Answers how a route takes over what a request brought along, which else is let go of with the answer. */
const boundBodies = (app: FastifyInstance, callers: Callers): ((request: FastifyRequest) => Disposable) => {
  const bodies = new Bodies()
  const places = new WeakMap<FastifyRequest, BodyPlace>()
  app.addHook("preParsing", async (request, reply, payload) => {
    const caller = callers.get(request)
    if (caller === undefined || !isBodied(request)) return payload
    const place = bodies.enter({ user: caller.user, tenant: tenantOf(caller) })
    places.set(request, place)
    reply.raw.once("close", () => places.get(request)?.[Symbol.dispose]())
    const said = request.headers["content-length"]
    if (said === undefined) return pipeline(payload, counted(place), () => undefined)
    const bytes = Number(said)
    // What is longer than it may be is refused as such.
    if (bytes <= request.routeOptions.bodyLimit) place.grow(bytes)
    return payload
  })
  return (request) => {
    const place = places.get(request)
    places.delete(request)
    return place ?? { [Symbol.dispose]: () => undefined }
  }
}

/** Every request has its line and its count, those that nobody was let in with too. */
const tell = (app: FastifyInstance, { log, operations: { metrics } }: ServerParts, callers: Callers): void => {
  // Node looks at what is taken of it, and sets its own time for the next request.
  app.addHook("onSend", async (_request, reply) => void reply.raw.socket?.setTimeout(daemonLimits.answerStallMs.value))
  app.addHook("onResponse", async (request, reply) => {
    const { url: route = "none" } = request.routeOptions
    const { method } = request
    const { statusCode: status, elapsedTime: ms } = reply
    const caller = callers.get(request)
    const who = caller === undefined ? {} : { user: caller.user, tenant: tenantOf(caller), actor: caller.actor }
    log.request({ method, route, status, ...who, ms })
    metrics.request(method, route, status)
  })
}

export const createServer = async (parts: ServerParts): Promise<FastifyInstance> => {
  const compiler = compilers()
  const app = fastify({
    logger: false,
    bodyLimit: daemonLimits.bodyBytes.value,
    routerOptions: { maxParamLength: daemonLimits.pathChars.value, ignoreTrailingSlash: false },
    forceCloseConnections: true,
    return503OnClosing: true,
    schemaController: {
      compilersFactory: {
        // Its type is that of Fastify's own compiler, which is asked for something else.
        buildValidator: (() => compiler) as unknown as BuildValidator,
        // What a route answers is told whole: a schema that forgets a field must not hide it.
        buildSerializer: () => () => (data: unknown) => JSON.stringify(data),
      },
    },
    frameworkErrors: (_error, _request, reply) => {
      const problem = addressProblem()
      reply.raw.writeHead(problem.status, { "content-type": problemType })
      reply.raw.end(JSON.stringify(problem))
    },
  })
  app.removeContentTypeParser("text/plain")
  for (const schema of sharedSchemas()) app.addSchema(schema)
  app.setErrorHandler((error: Error, request, reply) => {
    const known = thrownProblem(error)
    if (known !== undefined) {
      return reply.headers(known.headers).type(problemType).code(known.problem.status).send(known.problem)
    }
    // Who left in the middle of a request hears no answer.
    if (request.raw.errored === error) return reply
    parts.log.fault(error)
    parts.onFault(error)
    const { problem } = refuse("internal", "the daemon itself failed over this request", "look at its log", {}, 500)
    return request.raw.socket.destroyed ? reply : reply.type(problemType).code(500).send(problem)
  })
  app.setNotFoundHandler((_request, reply) => {
    const { problem } = refuse("not_found", "there is nothing at this address", "GET /openapi.json lists what there is")
    return reply.type(problemType).code(404).send(problem)
  })
  describe(app, parts.version)
  const callers: Callers = new WeakMap()
  tell(app, parts, callers)
  const callerOf = secure(app, parts, callers)
  const takeBody = boundBodies(app, callers)
  parts.changes.onRevoked(() => void parts.standing.look())
  app.register(async (scope) => {
    const { host, calls, streams, empty, version, changes, onFault } = parts
    const shared = { host, calls, streams, empty, version, changes, onFault, callerOf, takeBody }
    const routes = { app: scope as unknown as FastifyInstance, ...shared }
    callRoutes(routes)
    catalogueRoutes(routes)
    approvalRoutes(routes)
    tokenRoutes(routes)
    secretRoutes(routes)
    operationRoutes(routes, parts.operations)
    grantRoutes(routes)
    questionRoutes(routes)
    mcpRoutes(routes)
    receiptRoutes(routes)
    const jobs = new Jobs()
    loginRoutes(routes, jobs)
    installRoutes(routes, jobs)
    // Before the host is closed: it waits for what is under way.
    scope.addHook("preClose", async () => jobs.cancelAll())
    let document: Buffer | undefined
    routes.app.get(
      "/openapi.json",
      {
        schema: {
          operationId: "document",
          summary: "This document",
          tags: ["daemon"],
          security: [],
          response: {
            "200": { description: "OpenAPI 3.1", type: "object", additionalProperties: true },
            ...problems(),
          },
        },
      },
      // Anybody may ask for it: it is made once.
      async (_request, reply) =>
        reply.type("application/json; charset=utf-8").send((document ??= Buffer.from(JSON.stringify(app.swagger())))),
    )
  })
  await app.ready()
  return app
}
