/**
 * Who listens for changes, in the new era: one router of the library's for each caller, so that nobody hears of another's.
 *
 * Guarantees: streams are bounded, of one caller and all together; a caller without a stream costs nothing for long.
 */
import {
  createMcpHandler,
  InMemoryServerEventBus,
  type McpHttpHandler,
  type McpServerFactory,
} from "@modelcontextprotocol/server"
import { mcpLimits } from "./limits.ts"

interface Listener {
  readonly bus: InMemoryServerEventBus
  readonly handler: McpHttpHandler
}

export class Subscribers implements AsyncDisposable {
  readonly #of = new Map<string, Listener>()
  readonly #factory: McpServerFactory
  readonly #onFault: (error: unknown) => void
  constructor(factory: McpServerFactory, onFault: (error: unknown) => void) {
    this.#factory = factory
    this.#onFault = onFault
  }
  get count(): number {
    return [...this.#of.values()].reduce((sum, { bus }) => sum + bus.listenerCount, 0)
  }
  /** Undefined: there are too many streams. */
  handlerOf(whose: string): McpHttpHandler | undefined {
    for (const [other, { bus }] of this.#of) if (bus.listenerCount === 0 && other !== whose) this.#of.delete(other)
    if (this.count >= mcpLimits.subscriptions.value) return undefined
    const known = this.#of.get(whose)
    if (known !== undefined) return known.handler
    const bus = new InMemoryServerEventBus(this.#onFault)
    const handler = createMcpHandler(this.#factory, {
      bus,
      legacy: "reject",
      maxSubscriptions: mcpLimits.subscriptionsOfOne.value,
      onerror: this.#onFault,
    })
    this.#of.set(whose, { bus, handler })
    return handler
  }
  /** The catalogue is another one by now: everybody may know. */
  listsChanged(): void {
    for (const { handler } of this.#of.values()) {
      handler.notify.toolsChanged()
      handler.notify.promptsChanged()
      handler.notify.resourcesChanged()
    }
  }
  updated(isTheirs: (whose: string) => boolean, uri: string): void {
    for (const [whose, { handler }] of this.#of) {
      if (!isTheirs(whose)) continue
      handler.notify.resourceUpdated(uri)
      handler.notify.resourcesChanged()
    }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all([...this.#of.values()].map(({ handler }) => handler.close()))
    this.#of.clear()
  }
}
