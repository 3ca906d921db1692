/**
 * Judges one request head inside a connection whose TLS is ended at the proxy. Pure.
 *
 * Guarantees: a head that passes names the host the connection is vetted for, once, in origin form; its framing is
 * one content length, or `chunked` alone, or none; the headers handed back hold the secrets' values and no hop-by-hop
 * or control header. TRACE is refused: its answer would show the sandbox the secret. A WebSocket is never a safe
 * method, since anything can be sent over it.
 * Assumes: an HTTP parser in strict mode made the head.
 */
import type { ReasonCode } from "../policy/reasons.ts"
import type { BodyStep } from "../secrets/body.ts"
import type { HeaderPair, MisusePlace, Substitutions } from "../secrets/substitute.ts"
import { aimOf, asksForTokens } from "../tokens/endpoint.ts"
import type { EgressCapture } from "../types.ts"
import { crossing } from "../http/hop-by-hop.ts"
import { isOverridden, isSafeMethod } from "../http/method.ts"
import { membersOf, pairsOf, valuesOf } from "./headers.ts"

export interface RequestHead {
  readonly method: string
  readonly url: string
  readonly httpVersion: string
  readonly rawHeaders: readonly string[]
  /** the client asks for a change of protocol */
  readonly upgrade: boolean
}

export interface InterceptRules {
  readonly name: string
  readonly port: number
  readonly substitutions: Substitutions
  readonly readOnlyHttp: "enforce" | "report" | "off"
  readonly capture?: EgressCapture
}

export interface Refusal {
  readonly code: ReasonCode
  /** what the code's own text leaves open; holds no value and no raw byte of the request */
  readonly detail?: string
}

type BodyFraming =
  | { readonly kind: "none" }
  | { readonly kind: "length"; readonly bytes: number }
  | { readonly kind: "chunked" }

export type HeadVerdict =
  | {
      readonly ok: true
      readonly kind: "http" | "websocket"
      /** what goes upstream, `Host` first, without framing */
      readonly headers: readonly HeaderPair[]
      readonly body: BodyFraming
      readonly encoding: string | undefined
      readonly used: readonly string[]
      readonly safe: boolean
      /** a method that would be refused if `readOnlyHttp` were `enforce` */
      readonly reported: boolean
      /** a request to a token endpoint */
      readonly forTokens: boolean
      /** others of its kind are answered with tokens here, so that what it asks for matters */
      readonly nearTokens: boolean
    }
  | { readonly ok: false; readonly refusal: Refusal }

const refusedMethods = new Set(["CONNECT", "TRACE", "TRACK", "PRI"])
/** written anew for the upstream */
const rewritten = new Set(["host", "content-length", "expect", "accept-encoding"])
const framing = ["host", "content-length", "transfer-encoding", "content-encoding"]

export function judgeHead(head: RequestHead, rules: InterceptRules): HeadVerdict {
  const pairs = pairsOf(head.rawHeaders)
  if (head.httpVersion !== "1.1" && head.httpVersion !== "1.0") return no("http_version")
  if (refusedMethods.has(head.method)) return no("method_not_allowed")
  const hosts = valuesOf(pairs, "host")
  if (hosts.length !== 1) return no("bad_host_header")
  const host = (hosts[0] as string).toLowerCase()
  const { name, port } = rules
  if (host !== `${name}:${port}` && !(host === name && port === 443)) {
    return no("authority_mismatch", `this connection is for ${name}:${port}; open another for other hosts`)
  }
  if (!head.url.startsWith("/") || head.url.includes("#")) return no("bad_target", "send the target in origin form")
  if (membersOf(pairs, "connection").some((member) => framing.includes(member))) {
    return no("bad_header", "Connection may not nominate a header that frames the message")
  }
  const body = framingOf(pairs, head.httpVersion)
  if (body === undefined) return no("bad_framing")
  if (head.upgrade) {
    const upgrades = membersOf(pairs, "upgrade")
    if (upgrades.length !== 1 || upgrades[0] !== "websocket" || head.method !== "GET" || head.httpVersion !== "1.1") {
      return no("upgrade_not_allowed")
    }
    if (body.kind !== "none") return no("bad_framing", "a WebSocket handshake has no body")
  }
  const aim = aimOf(rules.capture?.endpoints ?? [], { host: name, port }, { target: head.url, headers: pairs })
  if (aim === "alias" || (aim === "elsewhere" && isNear(rules) && asksForTokens(head.url, "", empty)))
    return no("token_endpoint")
  if (aim === "endpoint" && head.upgrade) return no("upgrade_not_allowed")
  const safe = !head.upgrade && isSafeMethod(head.method) && !isOverridden(pairs, head.url)
  if (!safe && rules.readOnlyHttp === "enforce") return no("read_only")

  // All headers are looked at, also those that are not forwarded: a placeholder in one is a misuse all the same.
  const all = rules.substitutions.apply({ method: head.method, host: name, target: head.url, headers: pairs })
  if (!all.ok) return { ok: false, refusal: misuse(all.where, all.placeholder) }
  const replaced = crossing(all.headers, undefined, rules.substitutions.headers).filter(
    ([key]) => !rewritten.has(key.toLowerCase()),
  )
  return {
    ok: true,
    kind: head.upgrade ? "websocket" : "http",
    // What comes back is searched for the secret, so it is asked for as it is.
    headers: [["Host", port === 443 ? name : `${name}:${port}`], ...replaced, ["Accept-Encoding", "identity"]],
    body,
    encoding: encodingOf(pairs),
    used: all.used,
    safe,
    reported: !safe && rules.readOnlyHttp === "report",
    forTokens: aim === "endpoint",
    nearTokens: aim === "elsewhere" && isNear(rules),
  }
}

const empty = Buffer.alloc(0)
const isNear = ({ capture, name }: InterceptRules): boolean =>
  capture?.endpoints.some(({ host }) => host === name) === true

const misuseDetails = {
  method: "it stands in the method",
  target: "it stands in the path or query",
  "header-name": "it stands in a header's name",
  header: "it stands, maybe encoded, in a header that it is not bound to",
  host: "the secret is not bound to this host",
  body: "it stands in the body or in a message",
} as const

export const misuse = (where: MisusePlace, placeholder: string): Refusal => ({
  code: "secret_misuse",
  detail: `${placeholder}: ${misuseDetails[where]}`,
})

/**
 * What a part of a body or a WebSocket message is refused with. One that cannot be searched is not guessed about; one
 * that nobody waits for any more is not passed on either, and there is nobody to refuse.
 */
export function refusalOf(step: BodyStep): Refusal | undefined {
  if (step.state === "misuse") return misuse("body", step.placeholder)
  return step.state === "unscannable" ? { code: "unsearchable_body", detail: step.reason } : undefined
}

const no = (code: ReasonCode, detail?: string): HeadVerdict => ({
  ok: false,
  refusal: detail === undefined ? { code } : { code, detail },
})

function framingOf(pairs: readonly HeaderPair[], httpVersion: string): BodyFraming | undefined {
  const lengths = valuesOf(pairs, "content-length")
  const codings = valuesOf(pairs, "transfer-encoding")
  if (codings.length > 0) {
    const chunked = codings.length === 1 && (codings[0] as string).trim().toLowerCase() === "chunked"
    return chunked && lengths.length === 0 && httpVersion === "1.1" ? { kind: "chunked" } : undefined
  }
  if (lengths.length === 0) return { kind: "none" }
  const bytes = Number(lengths[0])
  if (lengths.length > 1 || !/^[0-9]+$/.test(lengths[0] as string) || !Number.isSafeInteger(bytes)) return undefined
  return { kind: "length", bytes }
}

function encodingOf(pairs: readonly HeaderPair[]): string | undefined {
  const values = valuesOf(pairs, "content-encoding")
  return values.length === 0 ? undefined : values.join(",")
}
