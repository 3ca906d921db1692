/** A real HTTP service on loopback, an http driver for it, and a desk whose outlet is a real proxy. */
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { createServer, type IncomingMessage, type RequestListener } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { AddressInfo, Server } from "node:net"
import { createEgressProxy, type EgressProxyOptions } from "../../../../src/egress-proxy/index.ts"
import type { EventBody } from "../../../../src/host/events.ts"
import { notInvited } from "../../../../src/host/call/judging/second-run.ts"
import type { Failure, Success } from "../../../../src/host/failure.ts"
import type { Desk, KindCall } from "../../../../src/host/drivers/kind.ts"
import { httpKind } from "../../../../src/host/drivers/http/kind.ts"
import type { JsonObject, ToolContract } from "../../../../src/manifest/types.ts"
import { asDriver, load } from "../../../manifest/from-text.ts"
import { toolOf } from "../../call/values.ts"

export interface Service extends AsyncDisposable {
  readonly port: number
  readonly requests: readonly IncomingMessage[]
  readonly bodies: readonly string[]
}

const collect = async (request: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = []
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk)
  return Buffer.concat(chunks).toString("utf8")
}

export const listenOn = async (server: Server): Promise<number> => {
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return (server.address() as AddressInfo).port
}

/** Answers when the whole request was read. */
export const serve = async (
  answer: RequestListener,
  tls?: { readonly key: string; readonly cert: string },
): Promise<Service> => {
  const requests: IncomingMessage[] = []
  const bodies: string[] = []
  const listener: RequestListener = (request, response) => {
    requests.push(request)
    response.on("error", () => undefined)
    void collect(request)
      .then((body) => {
        bodies.push(body)
        answer(request, response)
      })
      .catch(() => undefined)
  }
  const server = tls === undefined ? createServer(listener) : createSecureServer(tls, listener)
  const port = await listenOn(server)
  return {
    port,
    requests,
    bodies,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export const json =
  (value: unknown, status = 200): RequestListener =>
  (_request, response) => {
    response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value))
  }

interface Asked {
  readonly port: number
  /** of `metadata.http`, as YAML in one line */
  readonly http: string
  readonly input?: JsonObject
  readonly tool?: Partial<ToolContract>
  readonly base?: string
  /** of the driver, more lines */
  readonly more?: string
  readonly secrets?: Readonly<Record<string, string>>
  readonly outputBytes?: number
  readonly signal?: AbortSignal
  readonly proxy?: Partial<EgressProxyOptions>
}

export const open = {
  type: "object",
  properties: { id: { type: "string" }, n: { type: "integer" }, list: { type: "array" }, note: { type: "string" } },
} as const

const frontOf = ({ http, base = "http://api.test", more = "" }: Asked): string => `
name: H
id: h-one
description: d
version: 1.0.0
kind: http
base_url: ${base}
${more.includes("network:") ? "" : 'network: { egress: ["api.test:80", "api.test:443"] }'}
${more.includes("auth:") || !http.includes("secrets.") ? "" : "auth: { state: { env: [KEY] } }"}
${more}
implements: [{ tool: t.one, version: ^1.0.0, metadata: { http: { ${http} } } }]`

export const callOf = (asked: Asked): { call: KindCall; rules: readonly string[] } => {
  const contract = asDriver(load("DRIVER.md", frontOf(asked), "strict"))
  const tool = toolOf({ id: "t.one", inputs: open, outputs: {}, mutates: [], ...asked.tool })
  const [implementation] = contract.implements
  if (implementation === undefined) throw new Error("no entry")
  const { binding, diagnostics } = httpKind.bind(contract, 0, tool, implementation)
  const call = {
    tool,
    driver: { key: "h-one@1", contract },
    binding,
    input: asked.input ?? {},
    context: {},
    operation: randomUUID(),
  }
  return { call, rules: diagnostics.filter(({ severity }) => severity === "error").map(({ rule }) => rule) }
}

interface Told {
  readonly outcome: Success | Failure
  readonly events: readonly EventBody[]
  readonly facts: JsonObject
  readonly denied: readonly string[]
  readonly shown: readonly string[]
}

const noFile = async () => ({ ok: false, fault: "hidden" }) as const
/** As fast as one likes. */
export const unpaced: Desk["pace"] = { turn: async () => undefined, leaveAlone: async () => undefined }
export const noFiles: Desk["layer"] = { read: noFile, stat: noFile, list: noFile, write: noFile }

/** One attempt, as the host would make it. */
export const ask = async (asked: Asked): Promise<Told> => {
  const { call, rules } = callOf(asked)
  if (rules.length > 0) throw new Error(rules.join(", "))
  const made = httpKind.command(call)
  if (!made.ok) return { outcome: made, events: [], facts: {}, denied: [], shown: [] }
  if (made.value.run !== "hosted") throw new Error("not hosted")
  await using proxy = await createEgressProxy({
    egress: call.driver.contract.egress.map(({ text }) => text),
    services: { "api.test": { address: "127.0.0.1", port: asked.port } },
    ...asked.proxy,
  })
  const events: EventBody[] = []
  let facts: JsonObject = {}
  const desk: Desk = {
    signal: asked.signal ?? new AbortController().signal,
    outputBytes: asked.outputBytes ?? 65_536,
    tell: (event) => events.push(event),
    note: (more) => {
      facts = { ...facts, ...more }
    },
    review: () => Promise.reject(new Error("nothing here is reviewed")),
    secret: async (name) => asked.secrets?.[name],
    outlet: { connect: (to) => proxy.dial(to) },
    layer: noFiles,
    pace: unpaced,
  }
  const outcome = notInvited({ tool: call.tool, command: made.value }, await made.value.act(desk))
  const denied = proxy.denials().map(({ reason, target }) => `${reason} ${target}`)
  return { outcome, events, facts, denied, shown: made.value.shown }
}
