/**
 * `https://id.example.com/oauth/token` → where a provider gives out tokens, or takes them back. Pure.
 *
 * Guarantees: one spelling for one place: a host name in lower case, a port, a path without escapes, dot segments,
 * empty segments or parameters. Anything else is refused, since a place that can be written in two ways can be missed.
 */
export interface TokenEndpoint {
  readonly host: string
  readonly port: number
  readonly path: string
}

/** What a driver's own OAuth is like, so that its tokens are kept out of its sandbox. */
export interface TokenCapture {
  readonly endpoints: readonly TokenEndpoint[]
  /** canonical names of further hosts that access tokens are meant for */
  readonly hosts: readonly string[]
  /** `pass`: the program reads its id token, and gets it as it came */
  readonly idToken: "replace" | "pass"
}

const NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})*$/
const PATH = /^(?:\/[A-Za-z0-9._~!$'()*+,:@-]+)+\/?$|^\/$/

const isTokenPath = (path: string): boolean =>
  path.length <= 512 && PATH.test(path) && !path.split("/").some((part) => part === "." || part === "..")

/** Undefined: it is not an address of that form. */
export const tokenEndpoint = (address: string): TokenEndpoint | undefined => {
  const [, host, port, path] = /^https:\/\/([^/:@?#]+)(?::([1-9][0-9]{0,4}))?(\/[^?#]*)$/.exec(address) ?? []
  if (host === undefined || path === undefined || !NAME.test(host) || /^[0-9.]+$/.test(host) || !isTokenPath(path))
    return undefined
  const number = port === undefined ? 443 : Number(port)
  return number > 65_535 ? undefined : { host, port: number, path }
}
