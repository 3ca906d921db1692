/**
 * The one way from a parsed request to an open upstream socket: decide, budget, resolve, vet, dial, record.
 *
 * Guarantees: a refused name causes no DNS query and no dial; an allow is recorded before a byte flows, and not acted on
 * when it cannot be, nor is any after it; work begun under an older policy generation never yields a socket. Everything
 * that is begun here ends: by the connect timeout, by the client going away, by a policy change, or by closing.
 */
import type { Socket } from "node:net"
import type { IpAddress } from "../policy/address.ts"
import type { Authority } from "../policy/authority.ts"
import { attempt } from "../connection/boundary.ts"
import { type BudgetMeter, type BudgetName, createBudgetMeter } from "../policy/budgets.ts"
import {
  type Attempt,
  attemptWith,
  type Connected,
  createConnector,
  type Outcome,
  vet,
  type Vetted,
} from "./connector.ts"
import { Deadline } from "../connection/deadline.ts"
import { decide, type NameVerdict, type Route } from "../policy/decide.ts"
import type { Endpoint } from "../connection/endpoint.ts"
import type { Kept } from "../http/kept.ts"
import { createKnownTunnels, type KnownTunnels } from "../http/known-tunnels.ts"
import { attemptBare, type DialBare } from "./dial-bare.ts"
import type { BareConnection } from "../connection/bare-connection.ts"
import { ReadMemory } from "../connection/read-memory.ts"
import type { ProxyLimits } from "../limits.ts"
import type { Place } from "../pace.ts"
import { type Carried, createPassages, type Passage, type Passages } from "../relay/passages.ts"
import type { CompiledPolicy, Grant } from "../policy/compile.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import { createDecodingRoom, type DecodingRoom } from "../secrets/decoding-room.ts"
import type { Interceptor } from "../tls/authority.ts"
import type { CapturedTokens } from "../tokens/captured.ts"
import { createTurns, type Turns } from "../connection/turns.ts"
import { createTurnstile } from "../../base/turnstile.ts"
import type { Dial, EgressBudgets, Protocol, Resolve, Verdict } from "../types.ts"
import type { Tape } from "../tape/words.ts"
import type { VerdictFacts, VerdictLog } from "../policy/verdict-log.ts"

interface OpenRequest {
  readonly protocol: Protocol
  readonly target: Authority
  readonly client: Endpoint
  /** another connection for a request that is counted and recorded elsewhere: only refusals are recorded */
  readonly quiet?: boolean
  /** said along with an allow: what a rule set to `report` would have refused it with */
  readonly report?: ReasonCode | undefined
}

export type Opened<Upstream = Socket> =
  | {
      readonly ok: true
      readonly upstream: Upstream
      readonly address: string
      readonly grant: Grant
      readonly passage: Passage
    }
  | { readonly ok: false; readonly verdict: Verdict }

export interface Gate {
  readonly policy: CompiledPolicy
  readonly generation: number
  readonly limits: ProxyLimits
  readonly interceptor: Interceptor | undefined
  readonly captured: CapturedTokens | undefined
  readonly tape: Tape | undefined
  readonly passages: Passages
  readonly meter: BudgetMeter
  /** by `host:port`, whatever was let through there */
  readonly carried: ReadonlyMap<string, Readonly<Carried>>
  readonly memory: ReadMemory
  /** when the next portion of this proxy's work is to be done */
  readonly turns: Turns
  /** memory for undoing the encodings of bodies */
  readonly decoding: DecodingRoom
  /** requests for tunnels that were taken apart before */
  readonly tunnels: KnownTunnels
  readonly pending: number
  /** The name verdict under the current policy; nothing is recorded. */
  decide(target: Authority): NameVerdict
  open(request: OpenRequest): Promise<Opened>
  /** Another request over a connection that `open` made under this policy: judged, counted and recorded anew. */
  again(request: OpenRequest, kept: Kept): Opened
  /** The same for a tunnel: where it will be relayed unseen, once its first flight has passed, by a bare connection. */
  openTunnel(
    request: OpenRequest,
    then: (opened: Opened<Socket | BareConnection>) => void,
    fail: (error: unknown) => void,
  ): void
  /** Records a refusal that was found outside `open`. */
  refuse(facts: VerdictFacts): Verdict
  record(facts: VerdictFacts): ReturnType<VerdictLog["record"]>
  /** Counts a request that needs no new connection; the reason when it may not pass. */
  countRequest(target: Authority): "budget" | undefined
  /**
   * For what serves a client by the policy as it is now, beyond any one passage: `cut` is called once when another
   * policy holds, or nothing may pass any more. The answer undoes it.
   */
  heldTo(cut: () => void): () => void
  /** The next generation: older passages, pending work and what is held to the older policy are cut. */
  replace(policy: CompiledPolicy): void
  /** Cuts all that is open or under way: it can no longer be recorded what comes of it. */
  stop(): void
  close(): void
}

/** A request on its way to its upstream. */
interface Begun {
  readonly ok: true
  readonly request: OpenRequest
  readonly grant: Grant
  readonly route: Route
  readonly generation: number
  readonly deadline: Deadline
  readonly stop: () => void
  aliases?: readonly string[]
}

interface GateOptions {
  readonly policy: CompiledPolicy
  readonly limits: ProxyLimits
  readonly log: VerdictLog
  readonly resolve: Resolve
  readonly dial: Dial
  /** dials for tunnels that are relayed unseen, where `dial` is the default one and this Node has bare connections */
  readonly dialBare?: DialBare | undefined
  /** told of each connection that was made, before anything passes over it */
  readonly onDialled?: ((upstream: Endpoint) => void) | undefined
  /** there when secrets are substituted */
  readonly interceptor?: Interceptor | undefined
  /** there when tokens are captured */
  readonly captured?: CapturedTokens | undefined
  /** keeps what passes, or answers in the upstreams' place */
  readonly tape?: Tape | undefined
  /** where it stands among the proxies of this process */
  readonly place: Place
}

export function createGate(options: GateOptions): Gate {
  const { limits, log, resolve, dialBare, tape } = options
  const dialSocket = attemptWith(options.dial)
  const meter = createBudgetMeter()
  const passages = createPassages(meter, limits)
  const tunnels = createKnownTunnels()
  const resolving = createTurnstile(limits.resolving, limits.resolvingOfOne)
  const carried = new Map<string, Carried>()
  const carriedTo = ({ hostText, port }: Authority): Carried => {
    const key = `${hostText}:${port}`
    const known = carried.get(key) ?? { out: 0, in: 0 }
    carried.set(key, known)
    return known
  }
  const pending = new Map<Deadline, ReasonCode | undefined>()
  const held = new Set<() => void>()
  let policy = options.policy
  let generation = 1
  let closed = false

  const budgets = (): EgressBudgets => policy.source.budgets
  const refuse = (facts: VerdictFacts): Verdict => log.record(facts).verdict
  const overBudget = (request: Pick<OpenRequest, "protocol" | "target">, name: BudgetName): Verdict =>
    refuse({ protocol: request.protocol, target: request.target, code: "budget", rule: `budgets.${name}` })

  const reach = async <T>(begun: Begun, attempt: Attempt<T>): Promise<Outcome<Connected<T>>> => {
    const { route, deadline } = begun
    if (tape?.mode === "replay") {
      const { hostText: host, port } = begun.request.target
      return { ok: true, value: { socket: tape.connect({ host, port }) as T, address: "replay" } }
    }
    const connector = (addresses: readonly IpAddress[]) =>
      createConnector(addresses, route.port, attempt, limits.dialAttempts)
    if (route.kind !== "resolve") return connector([route.ip]).dial(deadline)
    const { who = "" } = begun.request.client
    if (!(await resolving.enter(deadline, who))) return { ok: false, code: "dns_failure" }
    let vetted: Vetted
    try {
      vetted = await vet(policy, route, resolve, deadline)
    } finally {
      resolving.leave(who)
    }
    begun.aliases = vetted.aliases
    return vetted.outcome.ok ? connector(vetted.outcome.value).dial(deadline) : vetted.outcome
  }

  /** Will this be relayed without a look inside, once its first flight has passed? */
  const isUnseen = (target: Authority, grant: Grant): boolean =>
    tape === undefined &&
    (grant.protocol === "tcp" || (target.port === 443 && !policy.substitutions.boundTo(target.hostText)))

  const unforeseen = (): Outcome<never> => ({ ok: false, code: "internal" })

  const abortPending = (code: ReasonCode) => {
    for (const deadline of pending.keys()) {
      pending.set(deadline, code)
      deadline.expire()
    }
  }

  const cutHeld = () => {
    const cuts = [...held]
    held.clear()
    for (const cut of cuts) attempt(cut, () => {})
  }

  /** Decided and budgeted; from here on it ends by the deadline. */
  const begin = (request: OpenRequest): Begun | { readonly ok: false; readonly verdict: Verdict } => {
    const { protocol, target, client } = request
    if (closed) return { ok: false, verdict: refuse({ protocol, target, code: "closing" }) }
    if (log.broken) return { ok: false, verdict: refuse({ protocol, target, code: "verdict_log_failed" }) }
    const verdict = decide(policy, target)
    if (!verdict.allow) return { ok: false, verdict: refuse({ protocol, target, code: verdict.code }) }
    if (tape !== undefined && verdict.grant.protocol === "tcp") {
      tape.fault(`${target.text}: tcp:// can neither be recorded nor replayed`)
      return { ok: false, verdict: refuse({ protocol, target, code: "not_recordable", rule: verdict.grant.rule }) }
    }
    const over =
      (request.quiet === true ? undefined : meter.request(budgets(), target.hostText)) ?? meter.connection(budgets())
    if (over !== undefined) return { ok: false, verdict: overBudget(request, over) }
    const deadline = new Deadline(budgets().connectTimeoutMs)
    const stop = () => deadline.expire()
    client.on("close", stop)
    pending.set(deadline, undefined)
    return { ok: true, request, grant: verdict.grant, route: verdict.route, generation, deadline, stop }
  }

  const staleness = (begun: Begun): ReasonCode | undefined => {
    if (closed) return "closing"
    if (log.broken) return "verdict_log_failed"
    return begun.generation === generation ? undefined : "policy_changed"
  }

  /** On record first, then a passage; nothing where it could not be recorded. */
  const admit = <T extends Endpoint>(
    request: OpenRequest,
    grant: Grant,
    upstream: T,
    address: string,
    aliases?: readonly string[],
  ): Opened<T> | undefined => {
    const { protocol, target, client, report } = request
    const facts = { protocol, target, code: "allowed", address, aliases, rule: grant.rule, report } as const
    if (request.quiet !== true && !log.record(facts).recorded) {
      upstream.destroy()
      return undefined
    }
    const passage = passages.begin(generation, {
      carried: carriedTo(target),
      client,
      upstream,
      budgets,
      onBudget: (name) => overBudget(request, name),
      onIdle() {
        if (request.quiet !== true) refuse({ protocol, target, code: "idle_timeout", rule: grant.rule })
      },
      answers: protocol === "http" || protocol === "websocket",
      stalledMs: limits.stalledMs,
    })
    return { ok: true, upstream, address, grant, passage }
  }

  /** Reached or not: an upstream comes out only if it is still wanted, still allowed, and on record. */
  const conclude = <T extends Endpoint>(begun: Begun, reached: Outcome<Connected<T>>): Opened<T> => {
    const { request, grant, deadline } = begun
    const { protocol, target, client } = request
    deadline.settle()
    client.off("close", begun.stop)
    const cancelled = pending.get(deadline)
    pending.delete(deadline)
    const no = (code: ReasonCode): Opened<T> => ({
      ok: false,
      verdict: refuse({ protocol, target, code, rule: grant.rule, aliases: begun.aliases }),
    })
    if (!reached.ok) return no(cancelled ?? reached.code)
    const { socket, address } = reached.value
    const stale = staleness(begun)
    if (stale !== undefined || client.destroyed) {
      socket.destroy()
      return no(stale ?? "connect_failed")
    }
    options.onDialled?.(socket)
    return admit(request, grant, socket, address, begun.aliases) ?? no("verdict_log_failed")
  }

  const reachAndConclude = async <T extends Endpoint>(begun: Begun, attempt: Attempt<T>): Promise<Opened<T>> =>
    conclude(begun, await reach(begun, attempt).catch(unforeseen))

  return {
    get policy() {
      return policy
    },
    get generation() {
      return generation
    },
    get pending() {
      return pending.size
    },
    limits,
    interceptor: options.interceptor,
    captured: options.captured,
    tape,
    passages,
    meter,
    carried,
    memory: new ReadMemory(limits.lineMemoryBytes),
    turns: createTurns(limits.turnBytes, options.place),
    decoding: createDecodingRoom(limits.decodingBytes),
    tunnels,
    refuse,
    record: (facts) => log.record(facts),
    countRequest: (target) => (meter.request(budgets(), target.hostText) === undefined ? undefined : "budget"),
    decide: (target) => decide(policy, target),

    async open(request) {
      const begun = begin(request)
      return begun.ok ? reachAndConclude(begun, dialSocket) : begun
    },
    again(request, kept) {
      const { protocol, target } = request
      const refused = (code: ReasonCode): Opened => ({ ok: false, verdict: refuse({ protocol, target, code }) })
      if (closed) return refused("closing")
      const verdict = decide(policy, target)
      if (!verdict.allow) return refused(verdict.code)
      const over = meter.request(budgets(), target.hostText)
      if (over !== undefined) return { ok: false, verdict: overBudget(request, over) }
      return admit(request, verdict.grant, kept.upstream, kept.address) ?? refused("verdict_log_failed")
    },
    openTunnel(request, then, fail) {
      const begun = begin(request)
      if (!begun.ok) return then(begun)
      const { route, deadline } = begun
      if (dialBare === undefined || !isUnseen(request.target, begun.grant))
        return void reachAndConclude(begun, dialSocket).then(then).catch(fail)
      if (route.kind === "resolve") return void reachAndConclude(begun, attemptBare(dialBare)).then(then).catch(fail)
      dialBare(route.ip.text, route.port, deadline, (bare) => {
        const code = deadline.expired ? "connect_timeout" : "connect_failed"
        const address = route.ip.text
        try {
          then(
            conclude(begun, bare === undefined ? { ok: false, code } : { ok: true, value: { socket: bare, address } }),
          )
        } catch (error) {
          fail(error)
        }
      })
    },

    heldTo(cut) {
      held.add(cut)
      return () => void held.delete(cut)
    },
    replace(next) {
      policy = next
      generation += 1
      abortPending("policy_changed")
      passages.cutBefore(generation)
      cutHeld()
    },
    stop() {
      abortPending("verdict_log_failed")
      passages.cutAll()
      cutHeld()
    },
    close() {
      closed = true
      abortPending("closing")
      passages.cutAll()
      cutHeld()
    },
  }
}
