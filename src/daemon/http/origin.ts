/**
 * Is the request meant for this daemon? A page in a browser can send requests to loopback, under a name of its own that
 * leads there (DNS rebinding).
 *
 * Guarantees: pure. Over TCP the Host must be an address of loopback, `localhost`, the address that it listens on, or a
 * name that the operator gave; an Origin must be one that the operator gave, so that no page is served unasked.
 */
import { isIP } from "node:net"

export interface KnownNames {
  /** host names and addresses, lower case, without ports */
  readonly hosts: readonly string[]
  /** whole origins */
  readonly origins: readonly string[]
}

const HOST = /^(?:\[([0-9a-f:.]+)\]|([a-z0-9.-]+))(?::[0-9]{1,5})?$/

const isLoopback = (name: string): boolean => {
  if (name === "localhost" || name === "::1") return true
  return isIP(name) === 4 && name.startsWith("127.")
}

export const isKnownHost = (host: string | undefined, { hosts }: KnownNames): boolean => {
  const found = HOST.exec(host?.toLowerCase() ?? "")
  const name = found?.[1] ?? found?.[2]
  return name !== undefined && (isLoopback(name) || hosts.includes(name))
}

export const isKnownOrigin = (origin: string | undefined, { origins }: KnownNames): boolean =>
  origin === undefined || origins.includes(origin)
