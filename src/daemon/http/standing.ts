/**
 * What is still told to whom, once their token is no good any more.
 *
 * Guarantees: an answer that goes on (a stream of events, an export, MCP) ends when the token that it was asked with is
 * revoked or expires: at once where this daemon revoked it, else within a few seconds. A request that is not answered yet
 * is: it was let in.
 */
import type { ServerResponse } from "node:http"
import type { Host } from "../../host/types.ts"
import { daemonLimits } from "../limits.ts"

export class Standing implements Disposable {
  readonly #host: Host
  readonly #open = new Map<ServerResponse, string>()
  readonly #timer: NodeJS.Timeout
  constructor(host: Host) {
    this.#host = host
    this.#timer = setInterval(() => void this.look(), daemonLimits.standingMs.value)
    this.#timer.unref()
  }
  watch(response: ServerResponse, token: string): void {
    this.#open.set(response, token)
    response.once("close", () => this.#open.delete(response))
  }
  /** Where nobody can tell whether a token is good, it is left as it is until somebody can. */
  async look(): Promise<void> {
    const goingOn = [...this.#open].filter(([{ headersSent, writableEnded }]) => headersSent && !writableEnded)
    const tokens = new Set(goingOn.map(([, token]) => token))
    for (const token of tokens) {
      const isGood = await this.#host.tokens.callerOf(token).then(
        (caller) => caller !== undefined,
        () => true,
      )
      if (!isGood) for (const [response, own] of goingOn) if (own === token) response.destroy()
    }
  }
  [Symbol.dispose](): void {
    clearInterval(this.#timer)
  }
}
