/**
 * Which server a store lies on: a URL, read into its parts. Pure.
 *
 * Guarantees: what the environment or a file of the home says to other programs of PostgreSQL changes nothing here; a
 * server beyond this machine is spoken to by TLS that is verified, unless that was switched off in so many words. No part
 * of a URL is in a message.
 */
import ipaddr from "ipaddr.js"

export interface PostgresSettings {
  /** a name, an address, or the folder of a Unix socket */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password?: string
  /** absent: in the clear, on this machine or because it was asked for */
  readonly tls?: { readonly ca?: string }
}

export interface PostgresTls {
  readonly verify: boolean
  /** PEM */
  readonly ca?: string
}

type SettingsResult =
  | { readonly ok: true; readonly settings: PostgresSettings }
  | { readonly ok: false; readonly message: string }

const PORT = 5432

const isThisMachine = (host: string): boolean =>
  host.startsWith("/") || host === "localhost" || (ipaddr.isValid(host) && ipaddr.parse(host).range() === "loopback")

const decoded = (text: string): string | undefined => {
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** `postgres://user:password@host:5432/database`, or `postgres://user@/database?host=/run/postgresql` */
export const postgresSettings = (url: string, { verify, ca }: PostgresTls): SettingsResult => {
  const fault = (message: string): SettingsResult => ({ ok: false, message })
  const [, before = "", socket] = /^([^?]*)(?:\?host=(\/[^&#]*))?$/.exec(url.trim()) ?? []
  // A URL without a host is none to everybody; with a socket's folder the host does not count.
  const parsed = URL.parse(socket === undefined ? before : before.replace(/^([a-z]+:\/\/(?:[^@/]*@)?)\//, "$1socket/"))
  if (parsed === null || !["postgres:", "postgresql:"].includes(parsed.protocol))
    return fault("it holds no URL such as postgres://user:password@host:5432/database")
  const [user, password, database, folder] = [
    parsed.username,
    parsed.password,
    parsed.pathname.slice(1),
    socket ?? "",
  ].map(decoded)
  if (parsed.search !== "" || parsed.hash !== "") return fault("the URL has more than a host, a user and a database")
  if (user === undefined || password === undefined || database === undefined || folder === undefined)
    return fault("a part of the URL is not percent-encoded as it should be")
  if (user === "" || database === "" || database.includes("/")) return fault("the URL names no user, or no database")
  const host = folder === "" ? parsed.hostname.replace(/^\[|\]$/g, "") : folder
  if (host === "") return fault("the URL names no host")
  if (!verify && ca !== undefined) return fault("`tls: off` and `ca_file` contradict each other")
  const usesTls = verify && (ca !== undefined || !isThisMachine(host)) && !host.startsWith("/")
  return {
    ok: true,
    settings: {
      host,
      port: parsed.port === "" ? PORT : Number(parsed.port),
      database,
      user,
      ...(password === "" ? {} : { password }),
      ...(usesTls ? { tls: ca === undefined ? {} : { ca } } : {}),
    },
  }
}
