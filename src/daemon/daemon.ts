/**
 * The daemon: one host, its API, and the doors to it.
 *
 * Guarantees: one daemon on a data folder; a second says so and leaves. The Unix socket lies in the data folder, which is
 * its owner's alone, and each connection's user is asked of the kernel. TCP is opened where the operator says, with TLS where
 * a certificate is given, and nowhere but on this machine without one. Closing waits for calls under way, then cancels
 * them; it leaves no process, socket or lock.
 */
import { createServer as createHttp, type Server } from "node:http"
import { createServer as createHttps, Server as SecureServer } from "node:https"
import { chmodSync, mkdtempSync, readFileSync, rmSync, utimesSync } from "node:fs"
import { type AddressInfo, isIP } from "node:net"
import { once } from "node:events"
import { tmpdir } from "node:os"
import { createSecureContext, type SecureContextOptions } from "node:tls"
import { join } from "node:path"
import type { FastifyInstance } from "fastify"
import { daemonLockFile, daemonSocket } from "../data-folder/paths.ts"
import { tryFileLock } from "../host/data/file-lock.ts"
import { type Caller, tenantOf } from "../host/access/caller.ts"
import { dataFolderOf, openDataFolder } from "../host/data/folder.ts"
import { loadConfig } from "../host/config/load.ts"
import type { ServeConfig } from "../host/config/serve-settings.ts"
import { createHost } from "../host/host.ts"
import { HostStartError } from "../host/start-error.ts"
import type { Host, HostOptions, ReloadReport } from "../host/types.ts"
import { type CallWatch, CallsUnderWay } from "./calls-under-way.ts"
import { Knocks } from "./http/authenticate.ts"
import { Connections } from "./http/connections.ts"
import { inTurn } from "./http/in-turn.ts"
import type { KnownNames } from "./http/origin.ts"
import { Standing } from "./http/standing.ts"
import { daemonLimits } from "./limits.ts"
import { Health } from "./ops/health.ts"
import { DaemonLog } from "./ops/log.ts"
import { Metrics } from "./ops/metrics.ts"
import { Changes } from "./events/changes.ts"
import { createDaemonReload } from "./ops/reload.ts"
import { callPlaces, streamPlaces } from "./ops/places.ts"
import { Rest } from "./ops/rest.ts"
import { createServer } from "./server.ts"
import { CallSpans } from "./traces/call-spans.ts"
import type { TraceExporter } from "./traces/exporter.ts"

/** What is given here counts before what `serve` of the config says. */
export interface DaemonOptions extends Omit<HostOptions, "record"> {
  /** `HOST:PORT`; `none`: the Unix socket alone. Port 0: any that is free */
  readonly listen?: string
  /** PEM files */
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly version?: string
  readonly onFault?: (error: unknown) => void
  /** takes the log's lines where the config says `stderr`; default: nobody does */
  readonly stderr?: (line: string) => void
}

export interface Daemon extends AsyncDisposable {
  readonly host: Host
  /** the path of its Unix socket; nothing is there where the operator wants none */
  readonly socket: string
  /** all that it listens on, in words */
  readonly listens: readonly string[]
  /** `http://127.0.0.1:7433`; absent where it listens on no port */
  readonly address?: string
  /** Manifests and config, read again: taken whole, or not at all; the log's file anew. */
  reload(caller?: Caller): Promise<ReloadReport>
  /** Let calls settle, then end. */
  close(): Promise<void>
}

const timeouts = {
  maxHeaderSize: daemonLimits.headerBytes.value,
  headersTimeout: daemonLimits.headerMs.value,
  requestTimeout: daemonLimits.requestMs.value,
  keepAliveTimeout: daemonLimits.idleMs.value,
  connectionsCheckingInterval: 2_000,
}

interface Place {
  readonly host: string
  readonly port: number
}
const placeOf = (listen: string): Place => {
  const found = /^(?:\[([0-9a-fA-F:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})$/.exec(listen)
  const host = found?.[1] ?? found?.[2]
  const port = Number(found?.[3])
  if (host === undefined || !(port <= 65_535))
    throw new HostStartError(
      "input_invalid",
      `\`${listen}\` is not an address to listen on`,
      `write HOST:PORT, such as 127.0.0.1:7433`,
    )
  return { host, port }
}
const isLoopback = ({ host }: Place): boolean =>
  host === "localhost" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."))

const listening = async (server: Server, start: () => void, where: string): Promise<void> => {
  const failed = once(server, "error").then(([error]) => {
    const { code, message } = error as NodeJS.ErrnoException
    const fix = code === "EADDRINUSE" ? "name another with --listen, or end what uses it" : "name another with --listen"
    throw new HostStartError("internal", `the daemon cannot listen on ${where}: ${message}`, fix)
  })
  start()
  await Promise.race([once(server, "listening"), failed])
  failed.catch(() => undefined)
}

const closeServer = async (server: Server): Promise<void> => {
  if (!server.listening) return
  server.close()
  server.closeIdleConnections()
  const late = setTimeout(() => server.closeAllConnections(), 2_000)
  await once(server, "close")
  clearTimeout(late)
}

const openSocket = async (app: FastifyInstance, knocks: Knocks, path: string): Promise<Server> => {
  const server = createHttp(timeouts, inTurn(app.routing))
  server.maxConnections = daemonLimits.connections.value
  server.prependListener("connection", (socket) => {
    if (!knocks.admitLocal(socket)) socket.destroy()
  })
  rmSync(path, { force: true })
  await listening(server, () => server.listen(path), path)
  chmodSync(path, 0o600)
  return server
}

const readPem = (file: string, what: string): Buffer => {
  try {
    return readFileSync(file)
  } catch (error) {
    throw new HostStartError(
      "input_invalid",
      `the ${what} ${file} cannot be read: ${(error as Error).message}`,
      "name a PEM file that this user may read",
    )
  }
}
/** Known to fit each other before anybody is let in. */
const certificateOf = (tls: NonNullable<DaemonOptions["tls"]>): SecureContextOptions => {
  const pem = {
    minVersion: "TLSv1.2" as const,
    cert: readPem(tls.cert, "certificate"),
    key: readPem(tls.key, "certificate's key"),
  }
  try {
    createSecureContext(pem)
    return pem
  } catch (error) {
    throw new HostStartError(
      "input_invalid",
      `${tls.cert} and ${tls.key} are no certificate and its key: ${(error as Error).message}`,
      "name the certificate (with its chain) and the private key that belongs to it, both as PEM, without a passphrase",
    )
  }
}

const openPort = async (
  app: FastifyInstance,
  place: Place,
  connections: Connections,
  tls: DaemonOptions["tls"],
): Promise<Server> => {
  const handle = inTurn(app.routing)
  const server =
    tls === undefined
      ? createHttp(timeouts, handle)
      : createHttps({ ...timeouts, handshakeTimeout: daemonLimits.headerMs.value, ...certificateOf(tls) }, handle)
  connections.of(server)
  await listening(server, () => server.listen(place.port, place.host), `${place.host}:${place.port}`)
  return server
}

const addressOf = (server: Server, isTls: boolean): string => {
  const { address, family, port } = server.address() as AddressInfo
  return `${isTls ? "https" : "http"}://${family === "IPv6" ? `[${address}]` : address}:${port}`
}

const ended = async (calls: CallsUnderWay): Promise<void> => {
  const deadline = performance.now() + daemonLimits.closeMs.value
  while (calls.count > 0 && performance.now() < deadline) await calls.nextEnd(deadline - performance.now())
  if (calls.count > 0) calls.cancelAll()
}

const traceBy =
  (exporter: TraceExporter): NonNullable<CallWatch["trace"]> =>
  (caller, traceparent) => {
    const spans = CallSpans.begin(caller, traceparent)
    return spans && { hear: (event) => spans.hear(event), ended: (envelope) => exporter.add(spans.end(envelope)) }
  }

const watchOf = (
  log: DaemonLog,
  metrics: Metrics,
  health: Health,
  changes: Changes,
  rest: Rest,
  traces?: TraceExporter,
): CallWatch => ({
  before: () => health.refuseWithoutRoom(),
  ...(traces === undefined ? {} : { trace: traceBy(traces) }),
  ended: (envelope, caller, kind, ms) => {
    rest.worked()
    health.note(envelope)
    metrics.call(envelope, kind, ms)
    if (!envelope.ok && envelope.error.code === "approval_required")
      changes.held({ of: caller, id: envelope.approval?.id ?? envelope.call })
    log.call({
      call: envelope.call,
      code: envelope.ok ? "ok" : envelope.error.code,
      user: caller.user,
      tenant: tenantOf(caller),
      actor: caller.actor,
      ms,
    })
  },
})

/** What tidies temporary folders up goes by their age: this one is never old. */
const keptFresh = (folder: string): Disposable => {
  const timer = setInterval(() => {
    try {
      utimesSync(folder, new Date(), new Date())
    } catch {
      // It is gone: calls that name no workspace are refused, as if it had never been there.
    }
  }, daemonLimits.freshMs.value)
  timer.unref()
  return { [Symbol.dispose]: () => clearInterval(timer) }
}

const settingsOf = (written: ServeConfig, { listen, tls }: DaemonOptions): ServeConfig => {
  if (listen === "none" && !written.socket)
    throw new HostStartError(
      "input_invalid",
      "a daemon that listens nowhere is of no use to anybody",
      "name an address, or take `socket: false` out of caisson.yaml",
    )
  return {
    ...written,
    ...(listen === undefined ? {} : { listen }),
    ...(tls === undefined ? {} : { tls }),
  }
}

export const openDaemon = async (options: DaemonOptions = {}): Promise<Daemon> => {
  const { listen: _listen, tls: _tls, version = "0", onFault = () => undefined, stderr, ...forHost } = options
  const data = openDataFolder(dataFolderOf(forHost.data))
  const written = () => settingsOf(loadConfig(data, forHost.config).serve, options)
  let settings = written()
  const { listen, tls } = settings
  const place = listen === "none" ? undefined : placeOf(listen)
  if (place !== undefined && tls === undefined && !isLoopback(place))
    throw new HostStartError(
      "input_invalid",
      `the daemon does not listen on ${place.host} without TLS: tokens would be sent in the clear`,
      "give a certificate (`serve.tls` of caisson.yaml), or listen on 127.0.0.1 behind a proxy of your own",
    )
  await using opening = new AsyncDisposableStack()
  const lock = tryFileLock(daemonLockFile(data))
  if (lock === undefined)
    throw new HostStartError(
      "conflict",
      `a daemon runs on the data folder ${data} already`,
      "use that one, or another data folder (CAISSON_DATA)",
    )
  opening.use(lock)
  const empty = mkdtempSync(join(tmpdir(), "caisson-empty-"))
  opening.defer(() => rmSync(empty, { recursive: true, force: true }))
  opening.use(keptFresh(empty))
  const host = opening.use(await createHost({ ...forHost, data, record: true, warm: true }))
  const log = opening.use(new DaemonLog({ to: settings.log, ...(stderr === undefined ? {} : { stderr }) }))
  const health = new Health(host)
  const streams = streamPlaces(() => settings.limits)
  const metrics: Metrics = new Metrics({
    underWay: () => calls.count,
    streams: () => streams.count,
    held: async () => (await host.approvals()).length,
  })
  const traces =
    settings.traces === undefined
      ? undefined
      : new (await import("./traces/exporter.ts")).TraceExporter(settings.traces, version, (count) =>
          metrics.droppedSpans(count),
        )
  if (traces !== undefined) opening.use(traces)
  const changes = new Changes()
  const rest = opening.use(new Rest(() => calls.count))
  const watch = watchOf(log, metrics, health, changes, rest, traces)
  const calls: CallsUnderWay = new CallsUnderWay(
    host,
    callPlaces(() => settings.limits),
    watch,
  )
  const knocks = new Knocks()
  const names = (): KnownNames => ({
    hosts: [...settings.hosts, ...(place === undefined ? [] : [place.host.toLowerCase()])],
    origins: settings.origins,
  })
  const listener: { port?: Server } = {}
  const reload = createDaemonReload({
    host,
    log,
    metrics,
    settings: () => settings,
    written,
    take: (next) => void (settings = next),
    taken: () => changes.reloaded(),
    renew: () => {
      const { port } = listener
      if (tls === undefined || !(port instanceof SecureServer)) return () => undefined
      const context = certificateOf(tls)
      return () => port.setSecureContext(context)
    },
  })
  const operations = { health, metrics, reload, isOpen: () => settings.metrics === "open" }
  const connections = new Connections(daemonLimits.connections.value, () => {
    // What the operator lets one user have at once has to come over something.
    const { callsPerUser, streamsPerUser } = settings.limits
    return Math.max(daemonLimits.connectionsOfOne.value, 2 * callsPerUser + streamsPerUser)
  })
  const standing = opening.use(new Standing(host))
  const doors = { knocks, connections, standing, names }
  const parts = { host, calls, streams, ...doors, log, operations, version, empty, changes, onFault }
  const app = await createServer(parts)
  opening.defer(() => app.close())
  const path = daemonSocket(data)
  const local = settings.socket ? await openSocket(app, knocks, path) : undefined
  if (local !== undefined) opening.defer(() => closeServer(local))
  const opened = place === undefined ? undefined : await openPort(app, place, connections, tls)
  if (opened !== undefined) opening.defer(() => closeServer(opened))
  if (opened !== undefined) listener.port = opened
  const open = opening.move()
  let closed: Promise<void> | undefined
  const close = (): Promise<void> =>
    (closed ??= (async () => {
      calls.refuseNew()
      log.event("closing")
      const examined = health.close()
      await ended(calls)
      await examined
      await open.disposeAsync()
    })())
  log.event("began")
  const address = opened === undefined ? undefined : addressOf(opened, tls !== undefined)
  return Object.freeze({
    host,
    socket: path,
    listens: [...(address === undefined ? [] : [address]), ...(local === undefined ? [] : [path])],
    ...(address === undefined ? {} : { address }),
    reload,
    close,
    [Symbol.asyncDispose]: close,
  })
}
