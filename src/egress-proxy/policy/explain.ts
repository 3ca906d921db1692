/**
 * What a refusal means to whoever reads it, with the target's name in it, and what to do. Pure.
 *
 * Guarantees: every reason of the proxy, and the two that a sandbox's packet taps give, has a message and a hint;
 * where an entry in a driver would help, the hint spells that entry. Only targets in canonical spelling come in, and a
 * name in another script is shown in both spellings.
 */
import { type ReasonCode, reasons } from "./reasons.ts"
import { unicodeOf } from "./unicode-name.ts"

export interface Explained {
  readonly message: string
  readonly hint: string
}

/** What was stopped, as `denied` lists it: `host:port`, `host`, `udp://host:port`, `-` where it has no name. */
export interface Stopped {
  readonly reason: string
  readonly target: string
}

type Words = (target: Target) => readonly [message: string, hint?: string]
interface Target {
  /** for a sentence: `evil.test:443`, or `the target` */
  readonly shown: string
  readonly host: string
  readonly port: string | undefined
  /** an entry that would cover it */
  readonly entry: string
}

const declare = (entry: string): string =>
  `if the tool needs it, add "${entry}" to \`network.egress\` of the driver; an operator's \`egress.allow\` must cover it too`

const words: Readonly<Partial<Record<string, Words>>> = {
  host_not_allowed: ({ shown, entry }) => [`${shown} is not a declared host, so it was not dialled`, declare(entry)],
  port_not_allowed: ({ shown, entry }) => [
    `the host of ${shown} is declared, but not with this port, so it was not dialled`,
    declare(entry),
  ],
  address_not_allowed: ({ shown }) => [
    `${shown} was dialled by its address, which is not declared`,
    "dial hosts by name, and add the name to `network.egress` of the driver",
  ],
  no_binding: ({ shown }) => [
    `${shown} was dialled by an address that no declared name has here`,
    "dial hosts by name, and add the name to `network.egress` of the driver",
  ],
  sni_missing: ({ shown, host, port }) => [
    `the TLS handshake with ${shown} names no server`,
    `use a client that sends SNI, or declare "tcp://${host}:${port ?? "443"}"`,
  ],
  protocol_mismatch: ({ shown, host, port }) => [
    `the protocol spoken to ${shown} is not the one its entry is for`,
    `speak TLS on 443, TLS or HTTP on other ports, or declare "tcp://${host}:${port ?? "443"}"`,
  ],
  connect_failed: ({ shown }) => [
    `${shown} refused or dropped the connection; the answer is the proxy's, not the site's`,
  ],
  connect_timeout: ({ shown }) => [
    `${shown} did not accept the connection in time; the answer is the proxy's, not the site's`,
  ],
  dns_failure: ({ shown }) => [`the name of ${shown} could not be resolved; the answer is the proxy's, not the site's`],
  upstream_error: ({ shown }) => [
    `${shown} broke off or answered with a malformed response; the answer is the proxy's, not the site's`,
  ],
  upstream_timeout: ({ shown }) => [`${shown} did not answer in time; the answer is the proxy's, not the site's`],
}

const udp: Words = ({ shown }) => [
  `${shown} was sent datagrams, which are not carried`,
  "have the program use TCP; HTTP/3 clients fall back to it",
]

export function explainDenial({ reason, target }: Stopped): Explained {
  const found = targetOf(target)
  const known = Object.hasOwn(reasons, reason) ? reasons[reason as ReasonCode] : undefined
  const special = target.startsWith("udp://") ? udp : Object.hasOwn(words, reason) ? words[reason] : undefined
  const [message, hint] = special?.(found) ?? [
    known === undefined ? `${found.shown} was stopped` : `${found.shown}: ${known.text}`,
  ]
  return { message, hint: hint ?? known?.hint ?? "read docs/egress-proxy.md" }
}

/** A dial to a port that nothing serves is only seen by its address: that of a declared name is told by the name. */
export function namedDenial<T extends Stopped>(stopped: T, nameFor: (address: string) => string | undefined): T {
  const [, scheme = "", address = "", port = ""] = /^(udp:\/\/)?([0-9.]+):([0-9]+)$/.exec(stopped.target) ?? []
  const name = address === "" ? undefined : nameFor(address)
  return name === undefined ? stopped : { ...stopped, reason: "port_not_allowed", target: `${scheme}${name}:${port}` }
}

function targetOf(target: string): Target {
  const plain = target.replace(/^udp:\/\//, "")
  if (plain === "-" || plain === "…")
    return { shown: "a target without a name", host: "host", port: undefined, entry: "host:port" }
  const colon = /^(.*):([0-9]{1,5})$/.exec(plain)
  const [host, port] = colon === null ? [plain, undefined] : [colon[1] ?? plain, colon[2]]
  const unicode = unicodeOf(host)
  const also = unicode === undefined ? "" : ` (${unicode.text}, ${unicode.scripts.join(" and ")})`
  return { shown: `${plain}${also}`, host, port, entry: plain }
}
