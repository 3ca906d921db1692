/**
 * The bytes of one request head → what it asks for, or why it is refused. Pure.
 *
 * Guarantees: grammar, target, framing, protocol, methods and placeholders are judged here, in this order, for
 * requests to the proxy and inside tunnels alike; who may be reached is left to `decide`. A refusal tells whether the
 * end of the request is known, so that the connection can go on.
 */
import type { Authority } from "../policy/authority.ts"
import { decide } from "../policy/decide.ts"
import type { CompiledPolicy } from "../policy/compile.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import type { RulesOff } from "../policy/rules.ts"
import { frame, type Framing } from "./framing.ts"
import { parseHead, type RequestHead } from "./head.ts"
import { isOverridden, isSafeMethod } from "./method.ts"
import { askedInside, askedOfProxy } from "./target.ts"

export type Judged =
  | { readonly kind: "tunnel"; readonly authority: Authority }
  | {
      readonly kind: "exchange"
      readonly authority: Authority
      readonly path: string
      readonly head: RequestHead
      readonly framing: Framing
    }
  | {
      readonly kind: "refused"
      readonly code: ReasonCode
      readonly authority?: Authority | undefined
      readonly head?: RequestHead
      readonly framing?: Framing
    }

export function judgeRequest(policy: CompiledPolicy, bytes: Buffer, headerLines: number, inside?: Authority): Judged {
  const { off } = policy
  const parsed = parseHead(bytes, headerLines, off)
  if (!parsed.ok) return { kind: "refused", code: parsed.code, authority: inside }
  const head = parsed.value
  const asked = inside === undefined ? askedOfProxy(head, off) : askedInside(head, inside, off)
  if (!asked.ok) return { kind: "refused", code: asked.code, authority: asked.authority ?? inside, head }
  const { authority } = asked.value
  if (asked.value.kind === "tunnel") return { kind: "tunnel", authority }
  const framed = frame(head, off)
  if (!framed.ok) return { kind: "refused", code: framed.code, authority, head }
  const framing = framed.value
  const { path } = asked.value
  const refuse = (code: ReasonCode): Judged => ({ kind: "refused", code, authority, head, framing })
  if (inside === undefined && isForTls(policy, authority) && !off.has("target.tls-port"))
    return refuse("protocol_mismatch")
  // In the clear nobody looks at the tokens that come back.
  if (policy.source.capture?.endpoints.some(({ host }) => host === authority.hostText) === true)
    return refuse("protocol_mismatch")
  if (policy.source.readOnlyHttp === "enforce" && !isSafe(head, framing, path, off) && !off.has("method.read-only"))
    return refuse("read_only")
  // Only an intercepted connection has proven its host, so in the clear no placeholder is in its place.
  const secrets = policy.substitutions.apply({ method: head.method, host: "", target: path, headers: head.headers })
  if (!secrets.ok) return refuse("secret_misuse")
  return { kind: "exchange", authority, path, head, framing }
}

/** Does this only read? A WebSocket never does, since anything can be sent over it. */
export const isSafe = (head: RequestHead, framing: Framing, path: string, off: RulesOff): boolean =>
  isSafeMethod(head.method) && !framing.websocket && (off.has("method.override") || !isOverridden(head.headers, path))

/** Is plain HTTP asked of a port that this policy declares for TLS? */
function isForTls(policy: CompiledPolicy, authority: Authority): boolean {
  if (authority.port !== 443) return false
  const verdict = decide(policy, authority)
  return verdict.allow && verdict.grant.protocol === "web"
}
