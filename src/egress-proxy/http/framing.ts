/**
 * How long a request's body is, and which headers pass.
 *
 * Guarantees: a length is a plain decimal or exactly `chunked`, never both; anything else is refused. Framing headers
 * are never copied: the writer makes its own. An offer to change the protocol is heeded for WebSockets alone; any
 * other (HTTP/2 without TLS, which Java and curl offer by themselves) is left out and the request passes as it is.
 */
import { crossing } from "./hop-by-hop.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import { everyRule, firstBroken, type Rule, type RulesOff } from "../policy/rules.ts"
import { type Header, type RequestHead, valuesOf } from "./head.ts"

export type BodyLength =
  | { readonly kind: "none" }
  | { readonly kind: "bytes"; readonly length: number }
  | { readonly kind: "chunked" }

export interface Framing {
  readonly body: BodyLength
  readonly expectContinue: boolean
  readonly websocket: boolean
  /** the client may send another request afterwards */
  readonly keepAlive: boolean
}

const tokens = (values: readonly string[]) =>
  values
    .flatMap((value) => value.split(","))
    .map((token) => token.trim().toLowerCase())
    .filter((token) => token !== "")

export const framingRules: readonly Rule<RequestHead>[] = [
  { name: "framing.length-once", code: "bad_framing", broken: (head) => valuesOf(head, "content-length").length > 1 },
  {
    name: "framing.length-decimal",
    code: "bad_framing",
    broken: (head) => valuesOf(head, "content-length").some((value) => !isLength(value)),
  },
  {
    name: "framing.encoding-once",
    code: "bad_framing",
    broken: (head) => valuesOf(head, "transfer-encoding").length > 1,
  },
  {
    name: "framing.encoding-chunked",
    code: "bad_framing",
    broken: (head) => valuesOf(head, "transfer-encoding").some((value) => value.toLowerCase() !== "chunked"),
  },
  {
    name: "framing.not-both",
    code: "bad_framing",
    broken: (head) => valuesOf(head, "transfer-encoding").length > 0 && valuesOf(head, "content-length").length > 0,
  },
  {
    name: "framing.encoding-version",
    code: "bad_framing",
    broken: (head) => head.version === "1.0" && valuesOf(head, "transfer-encoding").length > 0,
  },
  {
    name: "upgrade.websocket",
    code: "upgrade_not_allowed",
    broken: (head) => tokens(valuesOf(head, "upgrade")).includes("websocket") && !isWebSocket(head),
  },
  {
    name: "expect.continue-only",
    code: "bad_expect",
    broken: (head) => valuesOf(head, "expect").some((value) => value.toLowerCase() !== "100-continue"),
  },
]

export const isLength = (value: string): boolean =>
  /^(0|[1-9][0-9]{0,15})$/.test(value) && Number(value) <= Number.MAX_SAFE_INTEGER

function isWebSocket(head: RequestHead): boolean {
  const upgrade = valuesOf(head, "upgrade")
  const key = valuesOf(head, "sec-websocket-key")
  return (
    head.method === "GET" &&
    head.version === "1.1" &&
    upgrade.length === 1 &&
    upgrade[0]?.toLowerCase() === "websocket" &&
    tokens(valuesOf(head, "connection")).includes("upgrade") &&
    key.length === 1 &&
    /^[A-Za-z0-9+/]{22}==$/.test(key[0] ?? "") &&
    valuesOf(head, "content-length").length + valuesOf(head, "transfer-encoding").length === 0
  )
}

export function frame(
  head: RequestHead,
  off: RulesOff = everyRule,
): { readonly ok: true; readonly value: Framing } | { readonly ok: false; readonly code: ReasonCode } {
  const code = firstBroken(framingRules, head, off)
  if (code !== undefined) return { ok: false, code }
  const length = valuesOf(head, "content-length")[0]
  const chunked = valuesOf(head, "transfer-encoding").length > 0
  const body: BodyLength = chunked
    ? { kind: "chunked" }
    : length === undefined
      ? { kind: "none" }
      : { kind: "bytes", length: Number.parseInt(length, 10) || 0 }
  const connection = tokens([...valuesOf(head, "connection"), ...valuesOf(head, "proxy-connection")])
  return {
    ok: true,
    value: {
      body,
      expectContinue: head.version === "1.1" && valuesOf(head, "expect").length > 0,
      websocket: isWebSocket(head),
      keepAlive: head.version === "1.1" && !connection.includes("close"),
    },
  }
}

/** What goes on to the other side; the writer adds its own Host and framing. */
export const passedHeaders = (headers: readonly Header[], off: RulesOff = everyRule): Header[] =>
  crossing(headers, off).filter(([name]) => !rewritten.has(name.toLowerCase()))

const rewritten: ReadonlySet<string> = new Set(["host", "content-length"])

/** Methods that are sent without any length when they have no body; all others say that it is empty. */
const bodiless: ReadonlySet<string> = new Set(["GET", "HEAD", "OPTIONS", "DELETE", "TRACE"])

/** Without it Node would frame an empty body as chunked, which some servers refuse. */
export const emptyBody = (method: string): readonly Header[] => (bodiless.has(method) ? [] : [["Content-Length", "0"]])

/** For `maxHeadersCount`: a response's head is bounded in bytes, and Node leaves headers beyond a number out unsaid. */
export const everyHeader = 0
