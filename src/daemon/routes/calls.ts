/**
 * `/v1/calls`: make a call, look at one, hear what happens in it, end it.
 *
 * Guarantees: the answer to a call is its envelope, at the status of its reason; to one that is made with `Prefer:
 * respond-async`, where it can be found. A call that is not the caller's is not there. A caller that leaves ends its call,
 * unless the call has a key to ask for it again by, or was to be answered later.
 */
import { randomUUID } from "node:crypto"
import type { FastifyReply, FastifyRequest } from "fastify"
import { mayReach, tenantOf } from "../../host/access/caller.ts"
import { hostLimits } from "../../host/limits.ts"
import type { CallRequest, Envelope } from "../../host/types.ts"
import { tellEvents } from "../events/stream.ts"
import type { Tape } from "../events/tape.ts"
import { noCallError, problemOf, problemType, refuse, statusOfEnvelope } from "../http/problem.ts"
import {
  callBody,
  closed,
  contentChange,
  envelope,
  envelopes,
  idParams,
  listOf,
  moment,
  open,
  problems,
  text,
} from "../http/schemas.ts"
import { daemonLimits } from "../limits.ts"
import type { Routes } from "./context.ts"

const noSuchCall = (): Error =>
  refuse("not_found", "there is no such call", "GET /v1/calls lists those that can be told of")

const headerOf = (request: FastifyRequest, name: string): string | undefined => {
  const value = request.headers[name]
  return typeof value === "string" ? value : undefined
}

/** RFC 7240: one of the wishes, whatever stands beside it. */
const prefersLater = (request: FastifyRequest): boolean =>
  (headerOf(request, "prefer") ?? "").split(/[,;]/).some((wish) => wish.trim().toLowerCase() === "respond-async")

/** RFC 7240: how long, in milliseconds, the call may wait for its workspace; not longer than the host lets it, and told so. */
const prefersWait = (request: FastifyRequest): number | undefined => {
  const found = /(?:^|[,;])\s*wait\s*=\s*"?([0-9]{1,6})"?\s*(?=$|[,;])/i.exec(headerOf(request, "prefer") ?? "")
  const seconds = Number(found?.[1] ?? 0)
  return seconds > 0 ? Math.min(seconds * 1000, hostLimits.waitMs.value) : undefined
}

const answer = (reply: FastifyReply, told: Envelope): FastifyReply => {
  const none = noCallError(told)
  if (none !== undefined) {
    if (none.retryable) reply.header("retry-after", "1")
    return reply.type(problemType).code(statusOfEnvelope(told)).send(problemOf(none))
  }
  if (!told.ok && told.error.retryable && statusOfEnvelope(told) === 503) reply.header("retry-after", "1")
  return reply.code(statusOfEnvelope(told)).send(told)
}
const recordSchema = open(
  {
    call: text,
    user: text,
    tool: text,
    workspace: text,
    state: { enum: ["running", "settled"] },
    began: moment,
    ended: moment,
    envelope,
  },
  ["call", "user", "tool", "workspace", "state", "began"],
)

const callerStays = (request: FastifyRequest, left: () => void): Disposable => {
  const { socket } = request.raw
  if (socket.destroyed) left()
  else socket.once("close", left)
  return { [Symbol.dispose]: () => void socket.off("close", left) }
}

const lastEventId = (request: FastifyRequest): number | undefined => {
  const given = headerOf(request, "last-event-id")
  if (given === undefined) return undefined
  if (!/^[0-9]{1,15}$/.test(given)) throw refuse("input_invalid", "`Last-Event-ID` is not the number of an event")
  return Number(given)
}

/** A call that ended before anybody listened, or before this daemon began: its end is all there is to tell. */
const tellEnd = (reply: FastifyReply, told: Envelope): void => {
  const data = JSON.stringify({
    type: "settled",
    call: told.call,
    ok: told.ok,
    ...(told.ok ? {} : { code: told.error.code }),
    commit: told.effects.some(({ committed }) => committed) ? "committed" : "none",
  })
  reply.raw.writeHead(200, { "content-type": "text/event-stream; charset=utf-8", "cache-control": "no-store" })
  reply.raw.end(`event: settled\ndata: ${data}\n\n`)
}

export const callRoutes = ({ app, host, calls, streams, empty, callerOf, takeBody }: Routes): void => {
  app.post(
    "/v1/calls",
    {
      bodyLimit: daemonLimits.callBytes.value,
      schema: {
        operationId: "makeCall",
        summary: "Run one tool call, sealed",
        tags: ["calls"],
        headers: {
          type: "object",
          properties: {
            "idempotency-key": {
              type: "string",
              minLength: 1,
              maxLength: 255,
              description: "brought again, it is given the first answer",
            },
            prefer: {
              type: "string",
              description:
                "`respond-async`: be told where the call is, at once; `wait=SECONDS`: wait so long for the workspace instead of failing on a conflict",
            },
            traceparent: {
              type: "string",
              description: "W3C trace context: where the daemon tells traces, the call is a part of this one",
            },
            "caisson-approved": {
              type: "string",
              enum: ["yes"],
              description: "a yes beforehand to what this call asks approval for, from who may approve",
            },
          },
        },
        body: callBody,
        response: {
          ...envelopes("the call's envelope"),
          "202": { description: "the call runs; see `Location`", ...open({ call: text, state: { const: "running" } }) },
        },
      },
    },
    async (request, reply) => {
      const caller = callerOf(request)
      const asked = request.body as CallRequest
      if (asked.workspace !== undefined && !asked.workspace.startsWith("/"))
        throw refuse(
          "input_invalid",
          "`workspace` is not an absolute path",
          "name the folder from the root, such as /srv/work",
        )
      const later = prefersLater(request)
      // Where one is told that the call runs, it is on record before, and stays there whatever becomes of this daemon.
      const key = headerOf(request, "idempotency-key") ?? (later ? `later-${randomUUID()}` : undefined)
      const wait = prefersWait(request)
      const traceparent = headerOf(request, "traceparent")
      if (wait !== undefined) reply.header("preference-applied", `wait=${wait / 1000}`)
      const begun = await calls.begin(asked, caller, {
        empty,
        approved: headerOf(request, "caisson-approved") === "yes",
        ...(key === undefined ? {} : { key }),
        ...(wait === undefined ? {} : { wait }),
        ...(traceparent === undefined ? {} : { traceparent }),
      })
      const body = takeBody(request)
      const ended = (): void => body[Symbol.dispose]()
      begun.envelope.then(ended, ended)
      if (later && begun.call !== "none") {
        // How it ends is on record; here nobody waits for it.
        begun.envelope.catch(() => undefined)
        return reply
          .code(202)
          .header("location", `/v1/calls/${begun.call}`)
          .header("preference-applied", wait === undefined ? "respond-async" : `respond-async, wait=${wait / 1000}`)
          .send({ call: begun.call, state: "running" })
      }
      using _staying = callerStays(request, key === undefined ? begun.cancel : () => undefined)
      const told = await begun.envelope
      return await answer(reply, told)
    },
  )

  app.get(
    "/v1/calls",
    {
      schema: {
        operationId: "listCalls",
        summary: "Calls that can be told of, the latest first",
        tags: ["calls"],
        querystring: closed({ limit: { type: "integer", minimum: 1, maximum: 200 } }),
        response: { "200": { description: "calls", ...open({ calls: listOf(recordSchema) }) }, ...problems() },
      },
    },
    async (request) => ({
      calls: await host.calls({ caller: callerOf(request), ...(request.query as { limit?: number }) }),
    }),
  )

  app.get(
    "/v1/calls/:id",
    {
      schema: {
        operationId: "getCall",
        summary: "One call, with its envelope once it has ended",
        tags: ["calls"],
        params: idParams,
        response: { "200": { description: "the call", ...recordSchema }, ...problems() },
      },
    },
    async (request) => {
      const { id } = request.params as { id: string }
      const found = await host.recorded(id, { caller: callerOf(request) })
      if (found === undefined) throw noSuchCall()
      return found
    },
  )

  app.delete(
    "/v1/calls/:id",
    {
      schema: {
        operationId: "cancelCall",
        summary: "End a call that runs; nothing of it is committed",
        tags: ["calls"],
        params: idParams,
        response: {
          "202": { description: "it is being ended", ...open({ call: text, state: { const: "running" } }) },
          ...problems(409),
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params as { id: string }
      const caller = callerOf(request)
      if (calls.cancel(id, (whose) => mayReach(caller, whose)))
        return reply.code(202).send({ call: id, state: "running" })
      const found = await host.recorded(id, { caller })
      if (found === undefined) throw noSuchCall()
      throw refuse("conflict", "the call has ended", "GET it to see how", {}, 409)
    },
  )

  app.get(
    "/v1/calls/:id/diff",
    {
      schema: {
        operationId: "callDiff",
        summary:
          "What a held call or a plan would change, or a call made lately changed, with what files hold before and after",
        tags: ["calls"],
        params: idParams,
        response: {
          "200": { description: "changes, deletions first", ...open({ changes: listOf(contentChange) }) },
          ...problems(),
        },
      },
    },
    async (request) => {
      const { id } = request.params as { id: string }
      const caller = callerOf(request)
      const held = await host.approval(id, { caller })
      if (held !== undefined) return { changes: held.content }
      const planned = calls.planned(id, (whose) => mayReach(caller, whose))
      if (planned !== undefined) return { changes: planned }
      if ((await host.recorded(id, { caller })) === undefined) throw noSuchCall()
      throw refuse(
        "not_found",
        "this call is neither held nor made lately, or it changed nothing",
        "GET the call: its effects are listed there",
      )
    },
  )

  app.get(
    "/v1/calls/:id/events",
    {
      exposeHeadRoute: false,
      schema: {
        operationId: "callEvents",
        summary: "What happens in a call, as server-sent events; `Last-Event-ID` goes on where one was",
        tags: ["calls"],
        params: idParams,
        headers: { type: "object", properties: { "last-event-id": { type: "string", maxLength: 15 } } },
        response: {
          "200": { description: "events", content: { "text/event-stream": { schema: text } } },
          ...problems(),
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params as { id: string }
      const caller = callerOf(request)
      const after = lastEventId(request)
      const tape: Tape | undefined = calls.tape(id)
      const isReachable = tape !== undefined && mayReach(caller, tape)
      const ended = isReachable ? undefined : (await host.recorded(id, { caller }))?.envelope
      if (!isReachable && ended === undefined) throw noSuchCall()
      const place = streams.enter({ user: caller.user, tenant: tenantOf(caller) })
      reply.hijack()
      using _place = place
      if (isReachable) await tellEvents(tape, reply.raw, after)
      else if (ended !== undefined) tellEnd(reply, ended)
      return await reply
    },
  )
}
