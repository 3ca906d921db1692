/**
 * The MCP server on a program's own stdin and stdout: one client, one caller, until either ends.
 *
 * Guarantees: stdout carries the protocol and nothing else. At the end of stdin what was asked is still answered, unless an
 * answer waits for something that the client would have to say; then, and where stdin breaks, all ends.
 */
import { once } from "node:events"
import { PassThrough } from "node:stream"
import { setImmediate as turn } from "node:timers/promises"
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio"
import { Logins } from "./calls/login.ts"
import { Runs } from "./calls/runs.ts"
import { createStates } from "./calls/states.ts"
import { mcpLimits } from "./limits.ts"
import { createMcpServer, type McpOptions } from "./server.ts"

type Message = Parameters<StdioServerTransport["send"]>[0]
const textAt = (message: unknown, key: string): string | undefined => {
  const value = (message as Readonly<Record<string, unknown>> | null)?.[key]
  return typeof value === "string" || typeof value === "number" ? JSON.stringify(value) : undefined
}
/** They end with the client's interest, and are not answered before. */
const ENDLESS = JSON.stringify("subscriptions/listen")

/** What was asked and is not answered yet, of either side. */
class Exchanges {
  readonly #asked = new Set<string>()
  readonly #asking = new Set<string>()
  readonly #waiting = new Set<() => void>()
  heard(message: unknown): void {
    this.#note(message, this.#asked, this.#asking)
  }
  said(message: unknown): void {
    this.#note(message, this.#asking, this.#asked)
    for (const look of this.#waiting) look()
  }
  #note(message: unknown, requests: Set<string>, answered: Set<string>): void {
    const [id, method] = [textAt(message, "id"), textAt(message, "method")]
    if (id === undefined || method === ENDLESS) return
    if (method === undefined) answered.delete(id)
    else requests.add(id)
  }
  /** Until all is answered that can be without another word from the client. */
  over(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!signal.aborted && this.#asked.size > 0 && this.#asking.size === 0) return
        this.#waiting.delete(look)
        signal.removeEventListener("abort", look)
        resolve()
      }
      this.#waiting.add(look)
      signal.addEventListener("abort", look)
      look()
    })
  }
}

/** The transport, with every message noted as it passes. */
const noting = (transport: StdioServerTransport, exchanges: Exchanges): void => {
  const send = transport.send.bind(transport)
  transport.send = async (message: Message): Promise<void> => {
    await send(message)
    exchanges.said(message)
  }
  let hear: StdioServerTransport["onmessage"]
  Object.defineProperty(transport, "onmessage", {
    configurable: true,
    get: () => hear,
    set: (next: StdioServerTransport["onmessage"]) => {
      hear =
        next &&
        ((...given: Parameters<typeof next>) => {
          exchanges.heard(given[0])
          next(...given)
        })
    },
  })
}

export const serveOnStdio = async (
  options: Omit<McpOptions, "states" | "runs" | "logins">,
  signal: AbortSignal,
  onFault: (error: unknown) => void,
): Promise<void> => {
  const states = createStates()
  using runs = new Runs()
  using logins = new Logins()
  // The library's transport closes where its input ends: this one does not.
  const input = new PassThrough()
  process.stdin.pipe(input, { end: false })
  const left = new AbortController()
  process.stdout.once("error", () => left.abort())
  const over = AbortSignal.any([signal, left.signal])
  const transport = new StdioServerTransport(input, process.stdout, {
    maxBufferSize: mcpLimits.requestBytes.value,
  })
  const exchanges = new Exchanges()
  noting(transport, exchanges)
  const served = serveStdio(() => createMcpServer({ ...options, states, runs, logins, watched: new Set() }), {
    transport,
    onerror: onFault,
  })
  // A file (`< requests`, `< /dev/null`) ends and is never closed; a pipe whose reader breaks is closed and never ends.
  const ended = process.stdin.readableEnded
    ? Promise.resolve()
    : Promise.race([once(process.stdin, "end", { signal: over }), once(process.stdin, "close", { signal: over })])
  await ended.catch(() => undefined)
  while (process.stdin.readableEnded && input.readableLength > 0 && !over.aborted) await turn()
  if (process.stdin.readableEnded) await exchanges.over(over)
  await served.close()
}
