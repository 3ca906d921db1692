/**
 * The network of a kept server: each call's own while it runs, none at all between two calls.
 *
 * Guarantees: what a call reaches, is denied and may spend is decided and counted by a proxy of its own, under that call's
 * policy; between calls every dial is refused, and counted. The listeners never stand without one who answers them.
 * What the server was told to trust stays the same for as long as it lives.
 */
import type { TokenKeep } from "../../../../egress-proxy/tokens/held.ts"
import type { EgressPolicy } from "../../../../egress-proxy/types.ts"
import type { Channel } from "../../../../sandbox/backend.ts"
import type { ServedEgress } from "../../core.ts"

const shut = ({ budgets }: EgressPolicy): EgressPolicy => ({
  entries: [],
  services: {},
  private: [],
  budgets,
  readOnlyHttp: "off",
  substitutions: [],
})

const countOf = ({ denials }: ServedEgress): number => denials().reduce((sum, { count }) => sum + count, 0)

export class KeptNetwork implements AsyncDisposable {
  readonly #trusted: ServedEgress
  readonly #idle: ServedEgress
  readonly #channel: Channel
  #serving: Disposable
  #told = 0
  private constructor(trusted: ServedEgress, idle: ServedEgress, channel: Channel) {
    this.#trusted = trusted
    this.#idle = idle
    this.#channel = channel
    this.#serving = idle.serve(channel)
  }
  /** `trusted`: of the policy that the server is started under; whoever made it ends it with the server. */
  static async open(trusted: ServedEgress, policy: EgressPolicy, channel: Channel): Promise<KeptNetwork> {
    return new KeptNetwork(trusted, await trusted.heir(shut(policy)), channel)
  }
  #hand(to: ServedEgress): void {
    // In one turn: a connection that nobody answers would be nobody's.
    this.#serving[Symbol.dispose]()
    this.#serving = to.serve(this.#channel)
  }
  /** For one call; ended by `end`. */
  async begin(policy: EgressPolicy, tokens?: TokenKeep): Promise<ServedEgress> {
    const call = await this.#trusted.heir(policy, tokens)
    this.#hand(call)
    return call
  }
  end(): void {
    this.#hand(this.#idle)
  }
  /** Dials that were refused since this was asked last, because nobody called. */
  refused(): number {
    const all = countOf(this.#idle)
    const since = all - this.#told
    this.#told = all
    return since
  }
  async [Symbol.asyncDispose](): Promise<void> {
    this.#serving[Symbol.dispose]()
    await this.#idle[Symbol.asyncDispose]()
  }
}
