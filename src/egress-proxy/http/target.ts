/**
 * What a request asks for: a tunnel, or one exchange with one authority.
 *
 * Guarantees: the authority comes from the target alone (from the tunnel, inside one); a Host header can only agree
 * with it. Absolute-form is taken apart by hand, so that no URL parser can mend a spelling.
 * Does not: decide; `decide` does, on the authority found here.
 */
import { type Authority, type Parsed, parseAuthority } from "../policy/authority.ts"
import { everyRule, type RulesOff } from "../policy/rules.ts"
import { type RequestHead, valuesOf } from "./head.ts"

type Asked =
  | { readonly kind: "tunnel"; readonly authority: Authority }
  | { readonly kind: "exchange"; readonly authority: Authority; readonly path: string }

type Refusal = Extract<Parsed<never>, { ok: false }> & { readonly authority?: Authority }
const refuse = (code: Refusal["code"], authority?: Authority): Refusal =>
  authority === undefined ? { ok: false, code } : { ok: false, code, authority }

const unpassed: ReadonlySet<string> = new Set(["TRACE", "TRACK"])

/** A request to the proxy itself: CONNECT or absolute-form. */
export function askedOfProxy(
  head: RequestHead,
  off: RulesOff = everyRule,
): { readonly ok: true; readonly value: Asked } | Refusal {
  if (head.method === "CONNECT") {
    const authority = parseAuthority(head.target, undefined, off)
    if (!authority.ok) return authority
    const host = checkHost(head, authority.value, "optional", off)
    if (host !== undefined) return refuse(host, authority.value)
    const body = valuesOf(head, "content-length").length + valuesOf(head, "transfer-encoding").length
    if (body > 0 && !off.has("connect.body")) return refuse("connect_body", authority.value)
    return { ok: true, value: { kind: "tunnel", authority: authority.value } }
  }
  if ((unpassed.has(head.method) || head.target === "*") && !off.has("method.unpassed"))
    return refuse("method_not_allowed")
  if (head.target.startsWith("/") || head.target === "*") return refuse("not_a_proxy_request")
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(head.target)?.[1]?.toLowerCase()
  if (scheme === undefined) return refuse("bad_target")
  if (scheme !== "http" && !(off.has("target.scheme") && scheme === "https")) return refuse("scheme")
  const rest = head.target.slice(scheme.length + 1)
  if (!rest.startsWith("//")) return refuse("bad_target")
  const cut = rest.slice(2).search(/[/?#]/)
  const authorityText = cut < 0 ? rest.slice(2) : rest.slice(2, 2 + cut)
  const tail = cut < 0 ? "" : rest.slice(2 + cut)
  const authority = parseAuthority(authorityText, 80, off)
  if (!authority.ok) return authority
  return exchange(head, authority.value, tail.startsWith("/") ? tail : `/${tail}`, off)
}

/** A request inside a tunnel to `authority`: origin-form only. */
export function askedInside(
  head: RequestHead,
  authority: Authority,
  off: RulesOff = everyRule,
): { readonly ok: true; readonly value: Asked } | Refusal {
  if (unpassed.has(head.method) || head.method === "CONNECT" || head.target === "*")
    return refuse("method_not_allowed", authority)
  if (!head.target.startsWith("/")) return refuse("bad_target", authority)
  return exchange(head, authority, head.target, off)
}

function exchange(
  head: RequestHead,
  authority: Authority,
  path: string,
  off: RulesOff,
): { readonly ok: true; readonly value: Asked } | Refusal {
  if (path.includes("#") && !off.has("target.fragment")) return refuse("bad_target", authority)
  const host = checkHost(head, authority, head.version === "1.1" ? "required" : "optional", off)
  if (host !== undefined) return refuse(host, authority)
  return { ok: true, value: { kind: "exchange", authority, path } }
}

/** Exactly one Host (or none where it is optional) that names the authority; the port may be left out. */
function checkHost(
  head: RequestHead,
  authority: Authority,
  need: "required" | "optional",
  off: RulesOff,
): Refusal["code"] | undefined {
  const values = valuesOf(head, "host")
  if (values.length > 1 && !off.has("host-header.once")) return "bad_host_header"
  const value = values[0]
  if (value === undefined)
    return need === "required" && !off.has("host-header.required") ? "bad_host_header" : undefined
  if (value === authority.text) return undefined
  const named = parseAuthority(value, authority.port, off)
  if (!named.ok) return "bad_host_header"
  if (named.value.hostText !== authority.hostText)
    return off.has("host-header.agrees") ? undefined : "authority_mismatch"
  if (named.value.port === authority.port || off.has("host-header.port")) return undefined
  return "bad_host_header"
}

/** The Host value that goes upstream: written anew, the port left out where it is the scheme's own. */
export const hostHeader = (authority: Authority, defaultPort: number): string =>
  authority.port === defaultPort ? authority.text.slice(0, authority.text.lastIndexOf(":")) : authority.text
