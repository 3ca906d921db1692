/**
 * `createEgressProxy`: one policy, one gate, any number of listeners.
 *
 * Guarantees: without `listen` nothing is opened, and creating one is cheap enough for one per call. Every connection
 * it accepts is counted, capped, and gone after `close`; `update` applies a whole policy at once or throws and
 * changes nothing. Listeners handed to `serve` stay their owner's: the proxy only answers their connections.
 */
import type { Socket as UdpSocket } from "node:dgram"
import type { Server } from "node:net"
import { type ByteSource, sourceOfSocket } from "./connection/byte-source.ts"
import { systemDial } from "./dial/connector.ts"
import { serveDnsTcp, serveDnsUdp } from "./serve/dns.ts"
import { createSyntheticAddresses, type SyntheticAddresses } from "./dns/synthetic.ts"
import { attempt } from "./connection/boundary.ts"
import { abort, descriptorOf } from "./connection/endpoint.ts"
import { type EgressEntry, parseEgressEntry } from "../manifest/values/egress-entry.ts"
import { parseIp } from "./policy/address.ts"
import { createGate, type Gate } from "./dial/gate.ts"
import { acceptFrom } from "./connection/accept.ts"
import { dialBare } from "./dial/dial-bare.ts"
import { handles, listeningHandle } from "./connection/handles.ts"
import { serveConnection } from "./serve/connection.ts"
import { Crowd } from "./serve/crowd.ts"
import { type Dialled, type HostedDial, hostedPair, serveHosted } from "./serve/hosted.ts"
import { listen } from "./serve/listener.ts"
import { defaultLimits, type ProxyLimits, processConnections, processPace, sandboxLimits } from "./limits.ts"
import { type Listen, type PolicyInput, policyFrom } from "./policy/options.ts"
import { compilePolicy, type CompileContext, PolicyError } from "./policy/compile.ts"
import type { Interceptor } from "./tls/authority.ts"
import { boundHosts, createCapturedTokens } from "./tokens/captured.ts"
import type { Tape } from "./tape/words.ts"
import type { TokenKeep } from "./tokens/held.ts"
import { systemResolve } from "./dial/resolve.ts"
import { whoseAddress } from "./policy/self.ts"
import { serveTransparent } from "./serve/transparent.ts"
import { createDoor } from "./serve/turn-away.ts"
import type { Dial, Resolve, Verdict } from "./types.ts"
import { createVerdictLog, type Denial, type VerdictLogger } from "./policy/verdict-log.ts"

export interface EgressProxyOptions extends PolicyInput {
  /** where to listen; absent: nowhere */
  readonly listen?: Listen
  readonly resolve?: Resolve
  readonly dial?: Dial
  readonly onVerdict?: (verdict: Verdict) => void
  /** gets one connection per verdict; a pino logger fits */
  readonly logger?: VerdictLogger
  readonly limits?: Partial<ProxyLimits>
  /**
   * Told of the descriptor of each TCP listener, whose connections inherit its options, and of each connection to an
   * upstream, for options of sockets that Node does not know of. What it throws is not heeded.
   */
  readonly onDescriptor?: (descriptor: number, of: "listener" | "upstream") => void
  /** PEM trust anchors beside the public ones, for upstreams of substituted secrets */
  readonly upstreamCa?: readonly string[]
  /** where the tokens of `capture` are kept */
  readonly tokens?: TokenKeep
  /** keeps what passes, with TLS ended here for every host, or answers in the upstreams' place, and nothing is dialled */
  readonly tape?: Tape
}

/** Listeners that belong to a sandbox, already listening. */
export interface ProxyChannel {
  readonly proxy: Server
  readonly transparent: ReadonlyMap<number, Server>
  readonly dnsUdp?: UdpSocket
  readonly dnsTcp?: Server
}

export interface ProxyCounters {
  readonly generation: number
  /** client connections open now */
  readonly connections: number
  /** allowed exchanges and tunnels open now */
  readonly passages: number
  /** requests being resolved or dialled now */
  readonly pending: number
  readonly bytesOut: number
  readonly bytesIn: number
  readonly requests: number
  readonly allowed: number
  readonly denied: number
  readonly malformed: number
  readonly infrastructure: number
}

interface CarriedBytes {
  /** `host:port` */
  readonly target: string
  readonly bytesOut: number
  readonly bytesIn: number
}

export interface EgressProxy extends AsyncDisposable {
  /** as usable in `listen`; absent when it listens nowhere */
  readonly address: string | undefined
  readonly port: number | undefined
  /** for `HTTP_PROXY`; absent on a Unix socket */
  readonly url: string | undefined
  /** PEM of the authority that the sandbox must trust; there when `substitutions` were given */
  readonly caPem: string | undefined
  /** The next generation: applied at once, older tunnels are closed. Throws and changes nothing when it is invalid. */
  update(policy: PolicyInput): void
  /** Answers the channel's connections until disposed, which also closes those that are open. */
  serve(channel: ProxyChannel): AsyncDisposable
  /** A connection for code of this process: decided, budgeted, dialled, recorded and cut like a client's. */
  dial(to: HostedDial): Promise<Dialled>
  /**
   * Another proxy for the same clients, at another time: policy, budgets and record are its own, the authority that they
   * trust and the addresses that they were told are this one's, which is closed after it.
   */
  heir(options: Omit<EgressProxyOptions, "listen">): Promise<EgressProxy>
  denials(): readonly Denial[]
  /** Requests that were allowed and could not be carried: the answers that they got are the proxy's, not a site's. */
  failures(): readonly Denial[]
  /** The declared name that an address inside the sandbox stands for. */
  nameFor(address: string): string | undefined
  counters(): ProxyCounters
  /** how many bytes went where, by host and port; together they are the counters' */
  carried(): readonly CarriedBytes[]
  close(): Promise<void>
}

/** What only tests hand in: rules switched off, who owns an address, and a Node that has no bare connections. */
type ProxyInternals = Pick<CompileContext, "off" | "whose" | "ownNames"> & {
  readonly bare?: boolean
  /** of the proxy that this one is an heir of */
  readonly inherited?: { readonly interceptor: BoundInterceptor | undefined; readonly names: SyntheticAddresses }
}

export async function createEgressProxy(options: EgressProxyOptions): Promise<EgressProxy> {
  return createProxyWith(options, {})
}

export async function createProxyWith(options: EgressProxyOptions, internals: ProxyInternals): Promise<EgressProxy> {
  const limits: ProxyLimits = { ...(options.listen === undefined ? sandboxLimits : defaultLimits), ...options.limits }
  const { inherited, ...rules } = internals
  const captured = options.tokens === undefined ? undefined : createCapturedTokens(options.tokens)
  const context: CompileContext = { whose: whoseAddress, captured, ...rules }
  const bare = internals.bare !== false && handles !== undefined
  const { onVerdict, logger } = options
  const log = createVerdictLog({
    onVerdict,
    logger,
    denialRows: limits.denialRows,
    refusalLines: limits.refusalLines,
    // Later, since whoever records is in the middle of something.
    onBroken: () => queueMicrotask(() => gate.stop()),
  })
  const described = (descriptor: number | undefined, of: "listener" | "upstream"): void => {
    if (descriptor !== undefined) attempt(() => options.onDescriptor?.(descriptor, of), nothing)
  }
  const policy = compilePolicy(policyFrom(options), context)
  const interceptor = inherited === undefined ? await interceptorFor(options) : inherited.interceptor
  if (inherited !== undefined) checkBoundHosts(interceptor, options)
  const place = processPace.join()
  const gate = createGate({
    policy,
    place,
    limits,
    log,
    resolve: options.resolve ?? systemResolve,
    dial: options.dial ?? systemDial,
    dialBare: bare && options.dial === undefined ? dialBare : undefined,
    interceptor,
    captured,
    tape: options.tape,
    onDialled: (upstream) => described(descriptorOf(upstream), "upstream"),
  })
  const connections = new Crowd(options.listen !== undefined)
  const door = createDoor(gate)
  let names: SyntheticAddresses = inherited?.names ?? createSyntheticAddresses({ generation: 0 })
  let closing: Promise<void> | undefined
  const undo: (() => void | Promise<void>)[] = []

  type Serve = (source: ByteSource, fail: (error: unknown) => void) => void
  type TurnAway = (source: ByteSource, verdict: Verdict) => void
  const accept = (serve: Serve, turnAway: TurnAway, group?: Set<ByteSource>) => (source: ByteSource) => {
    if (closing !== undefined) return abort(source)
    if (!hasRoom(gate, connections, limits, source))
      return turnAway(source, gate.refuse({ protocol: "tcp", code: "too_many_connections" }))
    connections.add(source)
    group?.add(source)
    processConnections.open += 1
    place.come()
    source.on("close", () => {
      place.go()
      connections.delete(source)
      group?.delete(source)
      processConnections.open -= 1
    })
    const fail = (): void => {
      gate.refuse({ protocol: "tcp", code: "internal" })
      abort(source)
    }
    try {
      serve(source, fail)
    } catch {
      fail()
    }
  }
  const listenTo = (server: Server, onClient: (source: ByteSource) => void): (() => void) => {
    described(listeningHandle(server)?.fd, "listener")
    return acceptFrom(server, bare, onClient)
  }
  const attach = (server: Server, group: Set<ByteSource>, serve: Serve, turnAway: TurnAway = abort) =>
    listenTo(server, accept(serve, turnAway, group))
  const muxed: Serve = (source, fail) => serveConnection(gate, source, fail)

  const serve = (channel: ProxyChannel): AsyncDisposable => {
    const group = new Set<ByteSource>()
    const detach = [
      attach(
        channel.proxy,
        group,
        (source, fail) => (isLoopback(source) ? muxed(source, fail) : serveTransparent(gate, names, source, fail)),
        (source, verdict) => (isLoopback(source) ? door.turnAway(source, verdict) : abort(source)),
      ),
      ...[...channel.transparent].map(([port, server]) =>
        attach(server, group, (source, fail) => serveTransparent(gate, names, source, fail, port)),
      ),
    ]
    if (channel.dnsTcp !== undefined)
      detach.push(
        attach(channel.dnsTcp, group, (source, fail) => void serveDnsTcp(gate, () => names, source).catch(fail)),
      )
    if (channel.dnsUdp !== undefined) detach.push(serveDnsUdp(gate, () => names, channel.dnsUdp))
    const stop = () => {
      for (const one of detach.splice(0)) one()
      for (const source of group) source.destroy()
    }
    undo.push(stop)
    return { [Symbol.asyncDispose]: async () => stop() }
  }

  const dial = (to: HostedDial): Promise<Dialled> =>
    new Promise((resolve) => {
      const { near, far } = hostedPair()
      const refused = (source: ByteSource, verdict: Verdict): void => {
        abort(source)
        resolve({ ok: false, verdict })
      }
      const source = sourceOfSocket(far)
      if (closing !== undefined) return refused(source, gate.refuse({ protocol: "tcp", code: "closing" }))
      const failed = (): void => refused(source, gate.refuse({ protocol: "tcp", code: "internal" }))
      accept(() => void serveHosted(gate, source, near, to).then(resolve, failed), refused)(source)
    })

  const close = async () => {
    await captured?.settled()
    gate.close()
    door.close()
    const gone = [...connections].map(
      (source) =>
        new Promise<void>((resolve) => {
          source.on("close", resolve)
          source.destroy()
        }),
    )
    if (inherited === undefined) interceptor?.authority.dispose()
    const ends = await Promise.allSettled([...gone, ...undo.splice(0).map(async (step) => step())])
    const failed = ends.find((end) => end.status === "rejected")
    log.flush()
    if (failed !== undefined) throw failed.reason
  }

  const bound =
    options.listen === undefined
      ? undefined
      : await listen(options.listen, (server) =>
          listenTo(
            server,
            accept(muxed, (source, verdict) => door.turnAway(source, verdict)),
          ),
        )
  if (bound !== undefined) undo.push(bound.close)

  return {
    address: bound?.address,
    port: bound?.port,
    url: bound?.port === undefined ? undefined : `http://${bound.address}`,
    caPem: interceptor?.authority.caPem,
    update(input) {
      checkBoundHosts(interceptor, input)
      gate.replace(compilePolicy(policyFrom(input), context))
      names = createSyntheticAddresses({ generation: gate.generation - 1 })
    },
    serve,
    dial,
    heir: (more) => createProxyWith(more, { ...internals, inherited: { interceptor, names } }),
    denials: () => log.denials(),
    failures: () => log.failures(),
    nameFor: (address) => names.nameFor(address),
    counters: () => ({
      generation: gate.generation,
      connections: connections.size,
      passages: gate.passages.open,
      pending: gate.pending,
      bytesOut: gate.meter.used.bytesOut,
      bytesIn: gate.meter.used.bytesIn,
      requests: gate.meter.used.requests,
      allowed: log.totals.allow,
      denied: log.totals.deny,
      malformed: log.totals.malformed,
      infrastructure: log.totals.infrastructure,
    }),
    carried: () => Array.from(gate.carried, ([target, sum]) => ({ target, bytesOut: sum.out, bytesIn: sum.in })),
    close: () => (closing ??= close()),
    [Symbol.asyncDispose]: () => (closing ??= close()),
  }
}

const nothing = (): void => {}

/** Where every address is local, any address with the proxy's port ends up at its listener; only loopback is it. */
const isLoopback = ({ local: { address } }: ByteSource): boolean =>
  address === undefined || /^(127\.|::1$|::ffff:127\.)/.test(address)

type BoundInterceptor = Interceptor & { readonly names: readonly string[] }

const boundNames = ({ substitutions = [], capture }: PolicyInput): readonly string[] => [
  ...new Set([...substitutions.flatMap(({ hosts }) => hosts), ...(capture === undefined ? [] : boundHosts(capture))]),
]

/** The hosts whose TLS is ended here where all of it is: those that have a name. */
const openedBy = (egress: readonly string[]): readonly EgressEntry[] =>
  egress.flatMap((text) => {
    const parsed = parseEgressEntry(text)
    return parsed.ok && parsed.entry.protocol === "web" && parseIp(parsed.entry.host) === undefined
      ? [parsed.entry]
      : []
  })

async function interceptorFor(options: EgressProxyOptions): Promise<BoundInterceptor | undefined> {
  const { upstreamCa, tape, egress } = options
  const opened = tape === undefined ? [] : openedBy(egress)
  const names = [
    ...new Set([...boundNames(options), ...opened.filter(({ wildcard }) => !wildcard).map(({ host }) => host)]),
  ]
  const under = opened.filter(({ wildcard }) => wildcard).map(({ host }) => host)
  if (names.length + under.length === 0) return undefined
  const { createCallAuthority } = await import("./tls/authority.ts")
  return { names, authority: createCallAuthority({ names, under }), ...(upstreamCa !== undefined && { upstreamCa }) }
}

/** The authority speaks for the hosts it was made for; a sandbox that trusts it cannot be told of others. */
function checkBoundHosts(interceptor: BoundInterceptor | undefined, input: PolicyInput): void {
  const foreign = boundNames(input).find((host) => interceptor?.names.includes(host) !== true)
  if (foreign !== undefined)
    throw new PolicyError(`substitutions: ${foreign} was not bound when the proxy was made; make another proxy`)
}

/** Room for one more connection, if need be by shedding the oldest idle tunnel, or one that is only silent. */
function hasRoom(gate: Gate, connections: Crowd, limits: ProxyLimits, newcomer: ByteSource): boolean {
  const full = () => connections.size >= limits.openConnections || processConnections.open >= processConnections.limit
  return !full() || gate.passages.shedOldest(limits.shedIdleMs) || connections.makeWay(newcomer, limits.shedIdleMs)
}
