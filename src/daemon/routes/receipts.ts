/**
 * `/v1/receipts`: the evidence, asked for and taken along.
 *
 * Guarantees: entries are answered as they lie in the log. A caller is told of its own; an operator of all of its tenant,
 * and the data folder's owner exports the log whole. An export holds no more in memory than its reader's connection does.
 */
import { Readable } from "node:stream"
import type { FastifyReply, FastifyRequest } from "fastify"
import type { ReceiptsOptions } from "../../host/types.ts"
import { orProblem, refuse } from "../http/problem.ts"
import { closed, count, idParams, listOf, moment, object, open, problems, text } from "../http/schemas.ts"
import { daemonLimits } from "../limits.ts"
import type { Routes } from "./context.ts"

const entry = open(
  {
    $schema: text,
    doctype: text,
    seq: count,
    ts: moment,
    actor: open({ id: text, role: text }, ["id"]),
    action: text,
    subject: open({ kind: text, ref: text, path: text }, ["kind"]),
    metadata: object,
    prevHash: text,
    hash: text,
    hashAlg: text,
  },
  ["$schema", "doctype", "seq", "ts", "actor", "action", "subject", "prevHash", "hash", "hashAlg"],
)
const page = {
  description: "entries, the latest first",
  ...open({ receipts: listOf(entry), next: text }, ["receipts"]),
}
const asked = { type: "string", minLength: 1, maxLength: 4096 } as const
const pages = {
  limit: { type: "integer", minimum: 1, maximum: 200 },
  cursor: {
    type: "string",
    minLength: 1,
    maxLength: 15,
    pattern: "^[0-9]+$",
    description: "`next` of the page before",
  },
} as const
const since = { type: "string", minLength: 10, maxLength: 40 } as const

export const receiptRoutes = ({ app, host, callerOf }: Routes): void => {
  const tags = ["receipts"]
  const tell = async (request: FastifyRequest, options: ReceiptsOptions): Promise<object> => {
    const { receipts, next } = orProblem(await host.receipts({ ...options, caller: callerOf(request) }))
    return { receipts, ...(next === undefined ? {} : { next }) }
  }

  app.get(
    "/v1/receipts",
    {
      schema: {
        operationId: "listReceipts",
        summary: "Receipts of calls and of decisions, by what they say",
        tags,
        querystring: closed({
          call: { ...asked, pattern: "^[0-9A-HJKMNP-TV-Z]{26}$" },
          tool: { ...asked, description: "`id@major`, or `id` of any" },
          user: asked,
          verdict: { ...asked, description: "`ok`, or the code of a reason" },
          since: { ...since, description: "a day or a date-time" },
          until: { ...since, description: "a day or a date-time, which is not included" },
          wrote: { ...asked, description: "an absolute path: what was committed there or below it" },
          host: { ...asked, description: "`host` or `host:port` that was reached" },
          denied: { type: "boolean", description: "something was denied, or the call itself was" },
          ...pages,
        }),
        response: { "200": page, ...problems() },
      },
    },
    (request) => tell(request, request.query as ReceiptsOptions),
  )

  app.get(
    "/v1/calls/:id/receipts",
    {
      schema: {
        operationId: "callReceipts",
        summary: "What is on record of one call: its receipt, and those of decisions about it",
        tags,
        params: idParams,
        querystring: closed(pages),
        response: { "200": page, ...problems() },
      },
    },
    async (request) => {
      const { id } = request.params as { id: string }
      const given = request.query as ReceiptsOptions
      const told = (await tell(request, { ...given, call: id })) as { readonly receipts: readonly unknown[] }
      if (told.receipts.length === 0 && given.cursor === undefined)
        throw refuse("not_found", "there is no receipt of such a call", "GET /v1/receipts lists those that there are")
      return told
    },
  )

  let exports = 0
  app.get(
    "/v1/receipts/export",
    {
      schema: {
        operationId: "exportReceipts",
        summary: "The log, a line an entry, the first first; for operators",
        tags,
        response: {
          "200": { description: "entries", content: { "application/x-ndjson": { schema: text } } },
          ...problems(),
        },
      },
    },
    async (request, reply): Promise<FastifyReply> => {
      const { lines } = orProblem(await host.exportReceipts({ caller: callerOf(request) }))
      if (exports >= daemonLimits.exports.value)
        throw refuse("overloaded", "receipts are being exported already", undefined, { "retry-after": "5" })
      exports += 1
      reply.hijack()
      const { raw } = reply
      raw.writeHead(200, { "content-type": "application/x-ndjson; charset=utf-8", "cache-control": "no-store" })
      const stream = Readable.from(lines, { objectMode: true, highWaterMark: 1 })
      await new Promise<void>((resolve) => {
        const end = (): void => {
          clearInterval(watch)
          stream.destroy()
          resolve()
        }
        let [sent, at] = [0, performance.now()]
        const watch = setInterval(() => {
          const now = raw.socket?.bytesWritten ?? 0
          const isStill = now === sent && raw.writableLength > 0
          if (!isStill) [sent, at] = [now, performance.now()]
          else if (performance.now() - at > daemonLimits.exportStallMs.value) raw.destroy()
        }, 1_000)
        raw.once("close", end)
        if (raw.closed || raw.destroyed) return end()
        // Part of the log is not the log: the reader sees that it broke off.
        stream.once("error", () => raw.destroy())
        stream.pipe(raw)
      })
      exports -= 1
      return reply
    },
  )
}
