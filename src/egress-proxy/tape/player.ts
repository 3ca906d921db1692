/**
 * Answers from a recording, over connections that lead nowhere else.
 *
 * Guarantees: nothing is resolved or dialled; a request that was not recorded is answered with 502 and is a fault that names
 * it and the recorded one most like it. Requests that were recorded several times are answered in that order; one more of
 * a safe method gets the last answer again, of another method it is a miss.
 * Assumes: whoever connects has judged what is asked.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { Socket } from "node:net"
import { duplexPair } from "node:stream"
import { tapeBodyBytes, tapeFaults, tapeHeadBytes, tapeShown } from "./limits.ts"
import { asSocket } from "./as-socket.ts"
import { createFaults } from "./recorder.ts"
import { scrubOf, sentDigest } from "./redact.ts"
import { addressOf, headerOf, keyOf, nearestTo } from "./requests.ts"
import type { Player, TapeExchange, TapeHeader, TapeTarget } from "./words.ts"

const pairsOf = ({ rawHeaders }: IncomingMessage): readonly TapeHeader[] =>
  rawHeaders.flatMap((name, at): readonly TapeHeader[] => (at % 2 === 0 ? [[name, rawHeaders[at + 1] ?? ""]] : []))

const bodyOf = async (request: IncomingMessage): Promise<Buffer> => {
  const parts: Buffer[] = []
  let size = 0
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length
    if (size > tapeBodyBytes) throw new RangeError("the body is larger than any that is recorded")
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** asked again, they change nothing */
const safeMethods: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS"])

const shown = (text: string): string => (text.length > tapeShown ? `${text.slice(0, tapeShown)}…` : text)

export const createPlayer = (recorded: readonly TapeExchange[], secrets: readonly string[]): Player => {
  const { fault, faults } = createFaults()
  const scrub = scrubOf(secrets)
  const byKey = Map.groupBy(recorded, keyOf)
  const next = new Map<string, number>()
  const used = new Set<TapeExchange>()
  const targets = new WeakMap<object, Omit<TapeTarget, "secure">>()

  const found = (key: string, method: string): TapeExchange | undefined => {
    const takes = byKey.get(key) ?? []
    const at = next.get(key) ?? 0
    next.set(key, at + 1)
    const exchange = takes[at] ?? (safeMethods.has(method) ? takes.at(-1) : undefined)
    if (exchange !== undefined) used.add(exchange)
    return exchange
  }
  const miss = (asked: Parameters<typeof nearestTo>[0]): string => {
    const wanted = `${asked.method} ${shown(asked.url)} is not in the recording`
    // Whoever asks on and on has been told enough.
    if (faults().length >= tapeFaults) return wanted
    const near = nearestTo(asked, recorded)
    if (near === undefined) return `${wanted}, which is empty`
    return `${wanted}; nearest is ${near.exchange.method} ${shown(near.exchange.url)} (differs: ${near.differs})`
  }
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const to = targets.get(request.socket) ?? { host: "unknown", port: 0 }
    // How it was asked makes no difference to what is found; this is for the words.
    const target = { ...to, secure: to.port === 443 }
    const method = request.method ?? "GET"
    const body = await bodyOf(request)
    const headers = pairsOf(request)
    const range = headerOf(headers, "range")
    const asked = {
      method,
      url: addressOf(target, request.url ?? "/", scrub, () => undefined),
      ...(range === "" ? {} : { range: range.slice(0, tapeShown) }),
      sent: { digest: sentDigest(body, headerOf(headers, "content-type"), scrub), bytes: body.length },
    }
    const exchange = found(keyOf(asked), method)
    response.sendDate = false
    if (exchange === undefined) {
      const said = miss(asked)
      fault(said)
      response.writeHead(502, "Not recorded", { "content-type": "text/plain; charset=utf-8" })
      response.end(`caisson: replay: ${said}\n`)
      return
    }
    const bare = method === "HEAD" || exchange.status === 204 || exchange.status === 304
    const framed = bare
      ? exchange.headers
      : [...exchange.headers, ["content-length", String(exchange.body.length)] as const]
    response.writeHead(exchange.status, exchange.phrase, framed.flat())
    response.end(bare ? undefined : exchange.body)
  }
  const server = createServer({ requireHostHeader: false, maxHeaderSize: 2 * tapeHeadBytes, keepAliveTimeout: 0 })
  server.on("request", (request, response) => {
    answer(request, response).catch((error: unknown) => {
      if (!request.complete) return void response.destroy()
      fault(`a request could not be looked up: ${error instanceof Error ? error.message : "unknown"}`)
      response.destroy()
    })
  })
  server.on("clientError", (_error, socket) => void socket.destroy())
  return {
    mode: "replay",
    connect(target) {
      const [near, far] = duplexPair()
      asSocket(near)
      asSocket(far)
      near.once("close", () => far.destroy())
      far.once("close", () => near.destroy())
      targets.set(far, target)
      server.emit("connection", far as Socket)
      return near
    },
    fault,
    faults,
    used: () => ({ used: used.size, all: recorded.length }),
  }
}
