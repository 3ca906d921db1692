/**
 * Which headers cross the proxy, in the clear and intercepted alike, in either direction. Pure.
 *
 * Guarantees: order, spelling and repetition of what is kept are kept. Hop-by-hop headers, those that `Connection`
 * nominates, `Proxy-*`, `Via`, `Alt-Svc` (another way to the host, around the proxy) and this product's own control
 * headers never cross. `Connection` cannot take away a header that is meant for the other end: nominating
 * `Authorization` or `Cookie` would have a request arrive as another than the one that was sent.
 */
import { everyRule, type RulesOff } from "../policy/rules.ts"

type Header = readonly [name: string, value: string]

/** Headers that concern one connection, or the way to a host, and never cross the proxy, whoever sent them. */
const hopByHop: ReadonlySet<string> = new Set([
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "trailers",
  "transfer-encoding",
  "upgrade",
  "via",
  "http2-settings",
  "alt-svc",
])

/** Written anew, so that even a check that is switched off cannot copy them. */
const neverCopied: ReadonlySet<string> = new Set(["transfer-encoding", "connection", "upgrade"])

/** Headers for the other end by their definition: nominating one is a mistake or an attack, and is not heeded. */
const endToEndNames: ReadonlySet<string> = new Set([
  "authorization",
  "authentication-info",
  "cookie",
  "set-cookie",
  "www-authenticate",
  "host",
  "origin",
  "referer",
  "user-agent",
  "range",
  "expect",
  "date",
  "age",
  "etag",
  "expires",
  "last-modified",
  "location",
  "vary",
  "cache-control",
  "pragma",
  "forwarded",
  "idempotency-key",
  "strict-transport-security",
  "clear-site-data",
])
const endToEndPrefix =
  /^(accept|access-control|content|cross-origin|if|sec|x-api|x-auth|x-csrf|x-forwarded|x-frame|x-xsrf)(-|$)/

const isEndToEnd = (name: string): boolean => endToEndNames.has(name) || endToEndPrefix.test(name)

/** The members of a comma-separated header, lower case. */
const tokens = (value: string): readonly string[] =>
  value
    .split(",")
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== "")

/** @param protectedNames further headers, in lower case, that `Connection` cannot take away */
export function crossing(
  headers: readonly Header[],
  off: RulesOff = everyRule,
  protectedNames?: ReadonlySet<string>,
): Header[] {
  const nominated = new Set(
    headers.flatMap(([name, value]) => (name.toLowerCase() === "connection" ? tokens(value) : [])),
  )
  const isNominated = (key: string): boolean =>
    nominated.has(key) &&
    !off.has("headers.nominated") &&
    (off.has("headers.protected") || !(isEndToEnd(key) || protectedNames?.has(key) === true))
  return headers.filter(([name]) => {
    const key = name.toLowerCase()
    if (isNominated(key)) return false
    if (key.startsWith("proxy-")) return off.has("headers.proxy")
    if (key.startsWith("x-caisson-")) return off.has("headers.own")
    return !hopByHop.has(key) || (off.has("headers.hop-by-hop") && !neverCopied.has(key))
  })
}
