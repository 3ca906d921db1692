/**
 * Every reason the proxy can give, once: code, class, HTTP status, text, hint.
 *
 * Guarantees: the denial body, the `x-caisson-denied` header, the verdict line and the metric label all read this
 * table; a code that is not here does not exist. `deny` is policy, `malformed` is grammar, `infrastructure` is
 * neither the client's nor the policy's doing and never counts as a violation.
 */

export type ReasonClass = "allow" | "deny" | "malformed" | "infrastructure"

export interface Reason {
  readonly class: ReasonClass
  readonly status: number
  readonly text: string
  readonly hint: string
}

const of =
  (cls: ReasonClass, status: number) =>
  (text: string, hint: string, otherStatus = status): Reason =>
    Object.freeze({ class: cls, status: otherStatus, text, hint })
const deny = of("deny", 403)
const malformed = of("malformed", 400)
const broken = of("infrastructure", 502)

const declare = "declare it in `network.egress` of the driver, e.g. `host:port` or `tcp://host:port`"
const operator = "only the operator can open this, with `egress.services` or `egress.private` in caisson.yaml"
const never =
  "this address range is never reachable by name or literal; an operator can map a name with `egress.services`"
const spell = "send the plain ASCII host name and a decimal port, e.g. `api.example.com:443`"
const framing = "send one unambiguous HTTP/1.1 request: one Host, one Content-Length or `Transfer-Encoding: chunked`"

const addressClasses = {
  unspecified: ["the unspecified address range", never],
  loopback: ["a loopback address", never],
  link_local: ["a link-local address", never],
  metadata: ["a cloud metadata address", "metadata services are never reachable"],
  private: ["a private address", operator],
  shared: ["a shared (carrier-grade NAT) address", operator],
  protocol_assignment: ["an address reserved for protocol assignments", never],
  documentation: ["an address reserved for documentation", never],
  benchmark: ["an address reserved for benchmarks", never],
  multicast: ["a multicast address", never],
  reserved: ["a reserved address", never],
  embedded_v4: ["an IPv6 address that embeds an IPv4 address", "use the IPv4 address or a declared name"],
  self: [
    "an address of this host or of the proxy itself",
    "an operator can map a name to a local service with `egress.services`",
  ],
} as const

export type AddressClass = keyof typeof addressClasses

function forAddresses<P extends string>(
  prefix: P,
  what: (text: string) => string,
): Record<`${P}${AddressClass}`, Reason> {
  const rows = Object.entries(addressClasses).map(([name, [text, hint]]) => [
    `${prefix}${name}`,
    deny(what(text), hint),
  ])
  return Object.fromEntries(rows) as Record<`${P}${AddressClass}`, Reason>
}

export const reasons = Object.freeze({
  allowed: of("allow", 200)("allowed by an entry", ""),

  host_not_allowed: deny("the host is not declared", declare),
  port_not_allowed: deny("the host is declared, but not with this port", declare),
  reserved_name: deny("the name is reserved for this machine or its network", operator),
  ...forAddresses("", (text) => `the target is ${text}`),
  ...forAddresses("resolved_", (text) => `the name resolves to ${text}`),
  mixed_answer: deny(
    "the name resolves to public and to reserved addresses",
    "have the name's owner remove the reserved address",
  ),
  sni_mismatch: deny(
    "the TLS server name is not the host of the tunnel",
    "connect to the host that the TLS handshake names, and declare it",
  ),
  sni_missing: deny(
    "the TLS handshake names no server",
    "use a client that sends SNI, or declare the host as `tcp://host:port`",
  ),
  protocol_mismatch: deny(
    "the protocol is not the one this entry is for",
    "speak TLS on 443, TLS or HTTP on other ports, or declare `tcp://host:port`",
  ),
  authority_mismatch: deny(
    "the Host header names another host than the connection",
    "send the Host of the host that was dialled",
  ),
  upgrade_not_allowed: deny(
    "the WebSocket handshake is not a proper one",
    "send a GET without a body, `Connection: Upgrade`, `Upgrade: websocket` and one Sec-WebSocket-Key",
  ),
  read_only: deny(
    "the contract declares no network mutation, so only GET, HEAD and OPTIONS may be sent, and nothing that overrides them",
    "declare a `network:` or `external:` mutation in the tool's contract",
  ),
  secret_misuse: deny(
    "a secret's placeholder was sent where it does not belong",
    "send it only in the headers (`Authorization` unless it says otherwise) and to the hosts that the secret is bound to",
  ),
  unsearchable_body: deny(
    "the body cannot be searched for placeholders of secrets",
    "send it without Content-Encoding, or as gzip, deflate or br",
  ),
  token_endpoint: deny(
    "tokens were asked for elsewhere than at a declared token endpoint, or at one that is spelled another way",
    "send the request to the endpoint exactly as it is declared, or declare this one too",
  ),
  token_answer: deny(
    "the answer of a token endpoint could not be read with certainty, or its tokens could not be kept",
    "have the provider answer with one JSON object or form; if it does, see why the vault cannot be written",
    502,
  ),
  upstream_tls: deny(
    "the upstream's certificate is not valid for the host",
    "have the host present a valid certificate",
    502,
  ),
  no_binding: deny("the address was not handed out for a declared name", "connect by name, and declare the name"),
  stale_binding: deny("the address belongs to a name that is not declared any more", "resolve the name again"),
  command_not_allowed: deny("SOCKS5 BIND and UDP are not served", "use CONNECT"),
  budget: deny("a budget of this call is used up", "raise the named budget in the contract or the host's policy", 429),

  bad_byte: malformed("the host contains a byte that no host name has", spell),
  non_ascii: malformed("the host is not ASCII", "send the `xn--` form of the name"),
  non_canonical_host: malformed("the host is percent-encoded", spell),
  numeric_host: malformed("the host is a number but no dotted quad", "write IPv4 addresses as four decimal numbers"),
  name_too_long: malformed("the name or a label of it is too long", spell),
  bad_label: malformed("the name has an empty label or one that starts or ends with a hyphen", spell),
  bad_literal: malformed("the bracketed address is not an IPv6 address", "write `[2001:db8::1]:443`, without a zone"),
  bad_authority: malformed("the target is not `host:port`", spell),
  userinfo: malformed(
    "the target contains user information",
    "leave out everything up to the `@`; send credentials in a header",
  ),
  port_required: malformed("the target has no port", spell),
  bad_port: malformed("the port is not a plain decimal number from 1 to 65535", spell),
  scheme: malformed(
    "only http:// targets are fetched; TLS goes through CONNECT",
    "use CONNECT for https, and no other schemes",
  ),
  not_a_proxy_request: malformed("the request is not for a proxy", "send an absolute-form target or CONNECT"),
  bad_request_line: malformed("the request line is malformed", framing),
  http_version: malformed("the HTTP version is neither 1.0 nor 1.1", "speak HTTP/1.1 to the proxy"),
  method_not_allowed: malformed("the method is not passed", "TRACE, TRACK and `OPTIONS *` are not passed", 405),
  bad_target: malformed("the request target is malformed", "send an absolute-form target without a fragment"),
  bad_header: malformed("a header line is malformed", framing),
  bad_host_header: malformed("the request needs exactly one Host header that equals its target", framing),
  bad_framing: malformed("the length of the request body is ambiguous", framing),
  bad_chunk: malformed("the chunked body is malformed", framing),
  connect_body: malformed("CONNECT has no body", "leave out Content-Length and Transfer-Encoding"),
  bad_expect: malformed("only `Expect: 100-continue` is understood", "leave out Expect", 417),
  head_too_large: malformed("the request head is too large", "send fewer or shorter headers", 431),
  head_timeout: malformed("the request head did not arrive in time", "send the request head at once", 408),
  bad_socks: malformed("the SOCKS5 message is malformed", "speak SOCKS5 without authentication"),
  bad_client_hello: malformed("the TLS ClientHello is malformed, too large or too slow", "use a current TLS client"),
  bad_dns: malformed("the DNS message is malformed", "ask for one name, class IN"),

  dns_failure: broken("the name could not be resolved", "check the name and this host's resolver"),
  connect_failed: broken(
    "the upstream refused or dropped the connection",
    "check that the host is up and the port is right",
  ),
  connect_timeout: broken("the upstream did not accept the connection in time", "try again later", 504),
  upstream_error: broken("the upstream broke off or answered with a malformed response", "try again later"),
  upstream_timeout: broken("the upstream did not answer in time", "try again later", 504),
  client_tls: broken(
    "the program ended TLS without a request, mostly because it does not trust this call's certificate authority",
    "have the program trust the CA file that SSL_CERT_FILE names, and do not pin certificates",
  ),
  not_recordable: broken(
    "this protocol can neither be recorded nor replayed: HTTP over TCP, or over TLS to a host by name, is",
    "leave --record or --replay away, or have the program use HTTP without WebSockets",
  ),
  idle_timeout: broken("the connection was idle for too long", "send or receive something from time to time", 504),
  too_many_connections: broken("the proxy's connection cap is reached", "close connections, or try again later", 503),
  policy_changed: broken("the policy changed while the request was under way", "try again", 503),
  verdict_log_failed: broken("the verdict could not be recorded, so nothing was passed", "mend the log sink", 503),
  closing: broken("the proxy is closing", "", 503),
  internal: broken("the proxy itself failed", "try again; if it stays, report it", 500),
}) satisfies Record<string, Reason>

export type ReasonCode = keyof typeof reasons
export const reasonCodes = Object.keys(reasons) as readonly ReasonCode[]
