/**
 * `serve` of a config file: how the daemon is reached, what it tells its operator, and how much it takes on. Pure.
 *
 * Guarantees: it listens somewhere; a limit of one user or tenant is not above that of all.
 */
import type { Report } from "../../manifest/values/diagnostics.ts"

export interface ServeLimits {
  /** calls under way, those that wait for their turn included */
  readonly calls: number
  readonly callsPerTenant: number
  readonly callsPerUser: number
  readonly streams: number
  readonly streamsPerUser: number
}
/** Where traces of calls go, over OTLP/HTTP. */
export interface TraceSettings {
  /** https, or http to a loopback address; `/v1/traces` is put behind it */
  readonly endpoint: string
  /** absolute path */
  readonly headersFile?: string
}
export interface ServeConfig {
  /** `HOST:PORT`, or `none` */
  readonly listen: string
  /** on the Unix socket, too */
  readonly socket: boolean
  /** absolute paths of PEM files */
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly hosts: readonly string[]
  readonly origins: readonly string[]
  /** `stderr`, `none`, or the absolute path of a file */
  readonly log: string
  /** who may read metrics over TCP: operators' tokens, or anybody */
  readonly metrics: "token" | "open"
  readonly limits: ServeLimits
  /** absent: nobody is told */
  readonly traces?: TraceSettings
}

export interface ServeSettings {
  readonly traces?: { readonly endpoint: string; readonly headers_file?: string }
  readonly listen?: string
  readonly socket?: boolean
  readonly tls?: { readonly cert: string; readonly key: string }
  readonly hosts?: readonly string[]
  readonly origins?: readonly string[]
  readonly log?: string
  readonly metrics?: ServeConfig["metrics"]
  readonly limits?: {
    readonly calls?: number
    readonly calls_per_tenant?: number
    readonly calls_per_user?: number
    readonly streams?: number
    readonly streams_per_user?: number
  }
}

export const defaultServe: ServeConfig = Object.freeze({
  listen: "127.0.0.1:7433",
  socket: true,
  hosts: Object.freeze([]),
  origins: Object.freeze([]),
  log: "stderr",
  metrics: "token",
  limits: Object.freeze({ calls: 256, callsPerTenant: 256, callsPerUser: 256, streams: 1_500, streamsPerUser: 1_200 }),
})

const limitsOf = (written: NonNullable<ServeSettings["limits"]>): ServeLimits => {
  const { limits } = defaultServe
  const calls = written.calls ?? limits.calls
  const callsPerTenant = Math.min(written.calls_per_tenant ?? calls, calls)
  const streams = written.streams ?? limits.streams
  return Object.freeze({
    calls,
    callsPerTenant,
    callsPerUser: Math.min(written.calls_per_user ?? callsPerTenant, callsPerTenant),
    streams,
    streamsPerUser: Math.min(written.streams_per_user ?? Math.ceil(streams * 0.8), streams),
  })
}

const tracesOf = (
  { endpoint, headers_file: file }: NonNullable<ServeSettings["traces"]>,
  path: (text: string) => string,
  report: Report,
): TraceSettings => {
  const url = URL.canParse(endpoint) ? new URL(endpoint) : undefined
  const isHere = url !== undefined && /^(?:localhost|127\.[0-9.]+|\[::1\])$/.test(url.hostname)
  const isSafe = url?.protocol === "https:" || (url?.protocol === "http:" && isHere)
  if (!isSafe || url?.search !== "" || url.hash !== "" || url.username !== "" || url.password !== "")
    report.error(
      "config-value",
      "serve.traces.endpoint",
      "traces go to an https address, or to one of this machine, without a query or a password in it",
      "write an address such as http://127.0.0.1:4318 or https://otlp.example.com; what signs in goes into `headers_file`",
    )
  return Object.freeze({ endpoint, ...(file === undefined ? {} : { headersFile: path(file) }) })
}

export const serveOf = (written: ServeSettings, path: (text: string) => string, report: Report): ServeConfig => {
  const { listen = defaultServe.listen, socket = defaultServe.socket, tls, log = defaultServe.log } = written
  if (listen === "none" && !socket)
    report.error(
      "config-value",
      "serve.listen",
      "a daemon that listens nowhere is of no use to anybody",
      "name an address, or leave `socket` on",
    )
  return Object.freeze({
    listen,
    socket,
    ...(tls === undefined ? {} : { tls: Object.freeze({ cert: path(tls.cert), key: path(tls.key) }) }),
    hosts: Object.freeze((written.hosts ?? []).map((one) => one.toLowerCase())),
    origins: Object.freeze(written.origins ?? []),
    log: log === "stderr" || log === "none" ? log : path(log),
    metrics: written.metrics ?? defaultServe.metrics,
    limits: limitsOf(written.limits ?? {}),
    ...(written.traces === undefined ? {} : { traces: tracesOf(written.traces, path, report) }),
  })
}
