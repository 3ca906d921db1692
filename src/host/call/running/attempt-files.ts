/**
 * The workspace as one attempt of a call without a sandbox has it.
 *
 * Guarantees: nothing is opened before something is asked for; what is opened is sealed or thrown away once, and nothing
 * is read or written after that.
 */
import type { Unavailable } from "../../../sandbox/backend.ts"
import type { Exchange } from "../../../sandbox/backend.ts"
import type { HostedExchange } from "../../../sandbox/layers/exchange/hosted.ts"
import type { HostedFiles, HostedLayer } from "../../../sandbox/layers/hosted/layer.ts"
import type { HostedLayers } from "../../../sandbox/layers/hosted/layers.ts"
import type { SealedLayers } from "../../../sandbox/layers/sealed-layers.ts"

export class AttemptFiles implements HostedFiles {
  readonly #layers: () => Promise<HostedLayers>
  readonly #call: Parameters<HostedLayers["open"]>[0]
  #loaded: HostedLayers | undefined
  #opening: Promise<HostedLayer> | undefined
  #opened: HostedLayer | undefined
  constructor(layers: () => Promise<HostedLayers>, call: Parameters<HostedLayers["open"]>[0]) {
    this.#layers = layers
    this.#call = call
  }
  async #open(): Promise<HostedLayer> {
    this.#loaded = await this.#layers()
    this.#opened = this.#loaded.open(this.#call)
    return this.#opened
  }
  #layer(): Promise<HostedLayer> {
    this.#opening ??= this.#open()
    return this.#opening
  }
  read: HostedFiles["read"] = async (...asked) => (await this.#layer()).read(...asked)
  stat: HostedFiles["stat"] = async (...asked) => (await this.#layer()).stat(...asked)
  list: HostedFiles["list"] = async (...asked) => (await this.#layer()).list(...asked)
  write: HostedFiles["write"] = async (...asked) => (await this.#layer()).write(...asked)

  /** The folder that a function of this process finds its files in, and what is taken from there in the end. */
  async exchange(exchange: Exchange): Promise<HostedExchange> {
    return await (await this.#layer()).exchange(exchange)
  }

  get exceeded(): boolean {
    return this.#opened?.exceeded ?? false
  }
  refusalOf(error: unknown): Unavailable | undefined {
    return this.#loaded?.refusalOf(error)
  }
  /** One that is being opened is waited for; one that could not be has nothing to end. */
  async #end<T>(end: (layer: HostedLayer) => Promise<T>): Promise<T | undefined> {
    await this.#opening?.catch(() => undefined)
    this.#opening = Promise.reject(new Error("the call is over"))
    this.#opening.catch(() => undefined)
    return this.#opened === undefined ? undefined : end(this.#opened)
  }
  seal(): Promise<SealedLayers | undefined> {
    return this.#end((layer) => layer.seal())
  }
  discard(): Promise<undefined> {
    return this.#end(async (layer) => {
      await layer.discard()
      return undefined
    })
  }
}
