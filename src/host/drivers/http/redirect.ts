/**
 * Where a redirect leads, and what goes along.
 *
 * Guarantees: nothing that the driver wrote goes to another origin: no credential, no body, no header but those that are
 * the host's own; nor does an address that gives a secret away. TLS is never left. A request that may change something
 * is repeated elsewhere only where the service says that nothing happened yet, and on its own origin. Whether the host
 * may be asked at all is the policy's word, as for every request. Pure.
 */
import type { Answer } from "../kind.ts"
import { type HttpAnswer, type Origin, originText } from "./exchange.ts"
import type { HttpRequest } from "./request.ts"
import { givesAway, type HeldSecrets } from "./secrets.ts"
import { headerText } from "./status.ts"

export interface Hop {
  readonly origin: Origin
  readonly request: HttpRequest
}

const CODES = new Set([301, 302, 303, 307, 308])
const OF_BODY = new Set(["content-type", "content-encoding", "content-language"])

const refused = (why: string): Answer<never> => ({
  ok: false,
  code: "upstream_error",
  message: `the service redirects, and that is not followed: ${why}`,
  hint: "write the address that the service redirects to into the driver, if it is meant",
  retryable: false,
  details: { reason: "redirect" },
})

const originOf = ({ protocol, hostname, port }: URL): Origin => {
  const secure = protocol === "https:"
  return {
    secure,
    host: hostname.replace(/^\[(.*)\]$/, "$1"),
    port: port === "" ? (secure ? 443 : 80) : Number(port),
  }
}

/** Undefined: the answer is no redirect. */
export const redirected = (
  { origin, request }: Hop,
  answer: Pick<HttpAnswer, "status" | "headers">,
  secrets: HeldSecrets,
): Answer<Hop> | undefined => {
  if (!CODES.has(answer.status)) return undefined
  const location = headerText(answer, "location")
  const base = `${originText(origin)}${request.path}`
  if (location === undefined || !URL.canParse(location, base)) return refused("it does not say where to")
  const url = new URL(location, base)
  if (url.protocol !== "https:" && url.protocol !== "http:") return refused("it leads to another protocol")
  if (url.username !== "" || url.password !== "") return refused("its address holds a user's name")
  const next = originOf(url)
  if (origin.secure && !next.secure) return refused("it leaves TLS")
  const isSame = originText(next) === originText(origin)
  if (!isSame && (givesAway(location, secrets) || givesAway(url.href, secrets)))
    return refused("its address gives a secret away")
  const isGet = request.method === "GET"
  const becomesGet = isGet || answer.status === 303
  if (!becomesGet && (!isSame || answer.status < 307))
    return refused(`a ${request.method} request is not repeated elsewhere`)
  const path = `${url.pathname}${url.search}`
  const { own, body } = request
  const headers = isSame ? request.headers.filter(([name]) => isGet || !becomesGet || !OF_BODY.has(name)) : own
  return {
    ok: true,
    value: {
      origin: next,
      request: becomesGet
        ? { method: "GET", path, headers, own }
        : { method: request.method, path, headers, own, ...(body === undefined ? {} : { body }) },
    },
  }
}
