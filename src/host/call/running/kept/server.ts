/**
 * One server that is kept: its sandbox, its talk, its network, and what it prints.
 *
 * Guarantees: owns all of it from the start to the end, and is started with what the call that starts it was sealed with,
 * but for that call's time: its own is the server's life. What it prints goes to the call under way; between calls it is
 * counted and dropped, and a flood ends it. Ending it ends the tree and throws its layer away.
 */
import { PassThrough } from "node:stream"
import type { Denial, RunningSandbox } from "../../../../sandbox/backend.ts"
import type { ConversationCommand, Keeps, KeptTalk } from "../../../drivers/kind.ts"
import type { OpenedHome } from "../../../homes/sealed-homes.ts"
import { hostLimits } from "../../../limits.ts"
import type { HostCore } from "../../core.ts"
import type { Sealed, Step } from "../../steps.ts"
import { cancelled } from "../cancelled.ts"
import { notTaken } from "../not-taken.ts"
import { makeReady } from "../ready.ts"
import type { Waiting } from "./keeper.ts"
import { KeptNetwork } from "./network.ts"
import type { Whose } from "./whose.ts"

interface Parts {
  readonly whose: Whose
  readonly memoryBytes: number
  readonly running: RunningSandbox
  readonly talk: KeptTalk
  readonly network: KeptNetwork | undefined
  /** of the workspace, before it was started */
  readonly print: string | undefined
  readonly lifeMs: number
  /** the home that it was handed, where that is kept encrypted */
  readonly home?: OpenedHome | undefined
  readonly scope: AsyncDisposableStack
}

export class KeptServer implements Waiting {
  readonly whose: Whose
  readonly memoryBytes: number
  readonly running: RunningSandbox
  readonly talk: KeptTalk
  readonly network: KeptNetwork | undefined
  readonly print: string | undefined
  readonly home: OpenedHome | undefined
  readonly since = new Date()
  readonly over: Promise<unknown>
  /** calls that it was asked to serve */
  calls = 0
  /** what the kernel stopped and a call has told of */
  denied: readonly Denial[] = []
  readonly #ends: number
  readonly #scope: AsyncDisposableStack
  #isOver = false
  #heard: PassThrough | undefined
  #unheard = 0
  constructor({ whose, memoryBytes, running, talk, network, print, lifeMs, home, scope }: Parts) {
    this.whose = whose
    this.memoryBytes = memoryBytes
    this.running = running
    this.talk = talk
    this.network = network
    this.print = print
    this.home = home
    this.#ends = performance.now() + lifeMs
    this.#scope = scope
    const over = (): void => {
      this.#isOver = true
    }
    this.over = running.exited.then(over, over)
    running.stderr.on("data", (bytes: Uint8Array) => this.#hear(bytes)).on("end", () => this.#heard?.end())
    running.stderr.on("close", () => this.#heard?.end())
  }
  #hear(bytes: Uint8Array): void {
    if (this.#heard !== undefined) return void this.#heard.write(bytes)
    this.#unheard += bytes.length
    if (this.#unheard > hostLimits.keptUnheardBytes.value) this.running.stop({ by: "limit", limit: "output" })
  }
  /** What it prints from now on, until this is asked again or it is let go of. */
  listen(): PassThrough {
    const heard = new PassThrough()
    if (this.#isOver || this.running.stderr.readableEnded) heard.end()
    this.#heard = heard
    return heard
  }
  unlisten(): void {
    this.#heard?.end()
    this.#heard = undefined
    this.#unheard = 0
  }
  get isOver(): boolean {
    return this.#isOver
  }
  /** Is there time left for a call that may take so long? */
  lasts(wallMs: number): boolean {
    return performance.now() + wallMs + hostLimits.goodbyeMs.value < this.#ends
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#scope.disposeAsync()
  }
}

/** Start one for this call, and for those that come after it. */
export const startServer = async (
  core: HostCore,
  sealed: Sealed,
  command: ConversationCommand,
  keeps: Keeps,
  { whose, print, wallMs }: Pick<Parts, "whose" | "print"> & { readonly wallMs: number },
): Promise<Step<KeptServer>> => {
  const { signal, egress } = sealed
  const lifeMs = hostLimits.keptLifeMs.value + wallMs
  await using scope = new AsyncDisposableStack()
  const ready = await makeReady(core, sealed, command, lifeMs, scope)
  if (!ready.ok) return ready
  const { prepared, job, network: way, home } = ready.value
  const network =
    way === undefined || egress === undefined
      ? undefined
      : scope.use(await KeptNetwork.open(way.proxy, egress, way.channel))
  // It outlives the call: only while it is started does a cancel of the call end it.
  const ended = new AbortController()
  const onCancel = (): void => ended.abort()
  signal.addEventListener("abort", onCancel, { once: true })
  if (signal.aborted) onCancel()
  const running = await prepared.start(job, ended.signal)
  signal.removeEventListener("abort", onCancel)
  if (!running.ok) return signal.aborted ? cancelled : notTaken(running)
  scope.use(running)
  const { stdin, stdout } = running
  const talk = scope.use(await keeps.open({ stdin, stdout }))
  const { memoryBytes } = sealed.profile.limits
  const server = new KeptServer({
    whose,
    memoryBytes,
    running,
    talk,
    network,
    print,
    lifeMs,
    home,
    scope: scope.move(),
  })
  return { ok: true, value: server }
}
