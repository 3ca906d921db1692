/**
 * One entry of `network.egress`: `host` (ports 443 and 80), `host:port`, `*.host`, `*.host:port`, `tcp://host:port`.
 *
 * Guarantees: an `EgressEntry` is canonical (lower case, no trailing dot, no wildcard but a leading `*.`, IP literals
 * in their one canonical spelling and with a port); any other spelling is refused with a message of its own and,
 * where one can be derived, the corrected spelling. Parsing the `text` of an entry gives the same entry. Pure.
 * Does not: decide whether an address may be dialled; addresses, literal or resolved, are vetted later.
 */
import { withoutEnd } from "./ends.ts"
import { isIPv4, isIPv6 } from "node:net"
import { domainToASCII } from "node:url"
import { shown } from "./diagnostics.ts"
import { limits } from "../limits.ts"

export interface EgressEntry {
  /** the canonical text, e.g. `*.cdn.good.test:443` or `tcp://db.good.test:5432` */
  readonly text: string
  /** the name without the wildcard, or an IP literal in canonical form */
  readonly host: string
  readonly wildcard: boolean
  readonly ports: readonly number[]
  /** `web`: HTTP or TLS is expected and checked; `tcp`: any protocol */
  readonly protocol: "web" | "tcp"
}

export type EgressEntryResult =
  | { readonly ok: true; readonly entry: EgressEntry }
  | { readonly ok: false; readonly message: string; readonly fix?: string }

const WEB_PORTS: readonly number[] = Object.freeze([443, 80])
const LABEL = /^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$/
/** a last label that C libraries may read as part of a number: 127.1, 0x7f.1, 2130706433 */
const NUMERIC_LABEL = /^(?:[0-9]+|0x[0-9a-f]*)$/

const refuse = (message: string, fix?: string): EgressEntryResult =>
  fix === undefined ? { ok: false, message } : { ok: false, message, fix }

function entry(host: string, wildcard: boolean, port: number | undefined, protocol: "web" | "tcp"): EgressEntry {
  const shownHost = isIPv6(host) ? `[${host}]` : host
  const text = `${protocol === "tcp" ? "tcp://" : ""}${wildcard ? "*." : ""}${shownHost}${port === undefined ? "" : `:${port}`}`
  return Object.freeze({
    text,
    host,
    wildcard,
    ports: port === undefined ? WEB_PORTS : Object.freeze([port]),
    protocol,
  })
}

/** The address that a lenient resolver would read in a numeric spelling, if any. */
function numericAddress(host: string): string | undefined {
  const name = URL.parse(`http://${host}/`)?.hostname
  return name !== undefined && isIPv4(name) ? name : undefined
}

const canonicalIPv6 = (host: string): string | undefined => URL.parse(`http://[${host}]/`)?.hostname.slice(1, -1)

/** The IPv4 address inside an IPv4-mapped IPv6 literal in canonical spelling. */
function mappedIPv4(host: string): string | undefined {
  const hex = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(host)
  if (hex === null) return undefined
  const [high, low] = [Number.parseInt(hex[1] ?? "", 16), Number.parseInt(hex[2] ?? "", 16)]
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

interface Split {
  readonly host: string
  readonly port?: number
  readonly v6: boolean
}

/** `host`, `host:port`, `[v6]:port` → parts, or the refusal. `say` rebuilds a whole entry for the fix. */
function splitPort(rest: string, say: (host: string, port: string) => string): Split | EgressEntryResult {
  let host = rest
  let port: string | undefined
  const bracket = /^\[([^\]]*)\](?::(.*))?$/.exec(rest)
  if (bracket !== null) {
    host = bracket[1] ?? ""
    port = bracket[2]
  } else {
    const colons = rest.split(":").length - 1
    if (colons > 1) {
      if (isIPv6(rest))
        return refuse(
          "an IPv6 literal must stand in brackets and have a port",
          say(`[${canonicalIPv6(rest) ?? rest}]`, "443"),
        )
      return refuse(
        "more than one `:`; an entry has at most one port",
        say(rest.split(":")[0] ?? "", rest.split(":")[1] ?? "443"),
      )
    }
    if (colons === 1) [host = "", port] = rest.split(":")
  }
  const v6 = bracket !== null
  const name = v6 ? `[${host}]` : host
  if (port === undefined) return { host, v6 }
  if (port === "") return refuse("the port after `:` is missing", say(name, ""))
  if (port === "*") return refuse("`*` is not a port; name one port per entry, or none for 443 and 80", say(name, ""))
  if (/^[0-9]+-[0-9]+$/.test(port))
    return refuse("port ranges are not supported; write one entry per port", say(name, port.split("-")[0] ?? ""))
  if (!/^[0-9]+$/.test(port)) return refuse(`\`${shown(port, 20)}\` is not a port number`, say(name, "443"))
  const number = Number(port)
  if (number < 1 || number > 65_535) return refuse(`the port ${shown(port, 20)} is outside 1–65535`, say(name, "443"))
  if (String(number) !== port) return refuse("the port has leading zeros", say(name, String(number)))
  return { host, port: number, v6 }
}

function checkWildcard(name: string, say: (name: string) => string): EgressEntryResult | undefined {
  if (!name.includes("*")) return undefined
  if (name === "*") return refuse("`*` alone would allow every host; name the hosts")
  if (name === "*.") return refuse("`*.` names no domain; write `*.` and a domain")
  const rest = name.slice(1)
  if (/^[*.0-9]+$/.test(name))
    return refuse("wildcards are for names, not for IP addresses; list each address with its port")
  if (/^(?:\*+\.)+[^*]+$/.test(name) && !/^\*\.[^*]+$/.test(name)) {
    return refuse(
      "one leading `*.` already covers any depth of subdomains",
      say(`*.${name.replace(/^(?:\*+\.)+/, "")}`),
    )
  }
  if (/^\*[^.*][^*]*$/.test(name)) return refuse("`*` must be a whole label", say(`*.${rest}`))
  if (!/^\*\.[^*]+$/.test(name)) {
    const last = name.slice(name.lastIndexOf("*") + 1).replace(/^[^.]*\.?/, "")
    const where = name.endsWith("*") ? "at the right edge" : "in the middle"
    return refuse(
      `a wildcard is allowed only as the first label, not ${where} of a name`,
      last.includes(".") ? say(`*.${last}`) : undefined,
    )
  }
  if (!rest.slice(1).replace(/\.$/, "").includes(".")) {
    return refuse(`\`${shown(name)}\` would allow a whole top-level domain; name a domain of at least two labels`)
  }
  return undefined
}

function checkName(name: string, say: (name: string) => string): EgressEntryResult | undefined {
  if (name === "") return refuse("the host is missing")
  if (/[^\u0000-\u007f]/.test(name)) {
    const ascii = domainToASCII(name)
    return refuse(
      "host names are written in ASCII (punycode)",
      ascii === "" ? undefined : say(ascii.replace(/\.$/, "")),
    )
  }
  if (name.endsWith(".")) return refuse("a trailing dot is not canonical", say(withoutEnd(name, ".").toLowerCase()))
  if (name !== name.toLowerCase()) return refuse("host names are written in lower case", say(name.toLowerCase()))
  if (name.length > 253) return refuse("the host name is longer than 253 characters")
  for (const label of name.split(".")) {
    if (label === "")
      return refuse(
        "the host name has an empty label (two dots in a row, or a leading dot)",
        say(name.replaceAll(/\.{2,}/g, ".").replace(/^\./, "")),
      )
    if (label.length > 63) return refuse("a label of the host name is longer than 63 characters")
    if (!LABEL.test(label)) return refuse(`\`${shown(label, 40)}\` is not a valid label of a host name`)
  }
  if (name === "localhost" || name.endsWith(".localhost")) {
    return refuse("`localhost` is never reachable from a sandbox; the operator can map a name with `egress.services`")
  }
  return undefined
}

function checkAddress(split: Split, say: (host: string, port: string) => string): EgressEntryResult | undefined {
  const port = split.port === undefined ? "443" : String(split.port)
  if (split.v6) {
    if (split.host.includes("%")) return refuse("zone identifiers (`%…`) are not allowed in an address")
    const canonical = isIPv6(split.host) ? canonicalIPv6(split.host) : undefined
    if (canonical === undefined) return refuse("what stands in brackets is not an IPv6 address")
    const mapped = mappedIPv4(canonical)
    if (mapped !== undefined)
      return refuse("an IPv4-mapped IPv6 address is written as the IPv4 address", say(mapped, port))
    if (canonical !== split.host)
      return refuse("the IPv6 address is not in its canonical spelling", say(`[${canonical}]`, port))
    return split.port === undefined ? refuse("an IP address needs a port", say(`[${canonical}]`, "443")) : undefined
  }
  const last = split.host.slice(split.host.lastIndexOf(".") + 1)
  if (!NUMERIC_LABEL.test(last)) return undefined
  if (isIPv4(split.host))
    return split.port === undefined ? refuse("an IP address needs a port", say(split.host, "443")) : undefined
  const address = numericAddress(split.host)
  return refuse(
    "a host that ends in a number is read as an IP address; write it as four decimal numbers",
    address === undefined ? undefined : say(address, port),
  )
}

const isRefusal = (value: Split | EgressEntryResult): value is EgressEntryResult => "ok" in value

/** Constructing an entry is validating it. A fix, where there is one, is itself a valid entry. */
export function parseEgressEntry(text: unknown): EgressEntryResult {
  const result = parse(text)
  if (result.ok || result.fix === undefined) return result
  let fix: string | undefined = result.fix
  for (let round = 0; fix !== undefined && round < 5; round++) {
    const fixed = parse(fix)
    if (fixed.ok) return refuse(result.message, fixed.entry.text)
    fix = fixed.fix
  }
  return refuse(result.message)
}

function parse(text: unknown): EgressEntryResult {
  if (typeof text !== "string")
    return refuse("an egress entry is a string such as `api.example.com` or `api.example.com:443`")
  if (text.length > limits.egressEntryLength)
    return refuse(`the entry is longer than ${limits.egressEntryLength} characters`)
  if (text.trim() === "") return refuse("the entry is empty")
  if (text !== text.trim()) return refuse("blanks around the entry", text.trim())
  if (/[\u0000-\u0020\u007f]/.test(text)) return refuse("blanks and control characters are not allowed in an entry")

  const scheme = /^([A-Za-z][A-Za-z0-9+.-]*):\/\/(.*)$/.exec(text)
  const protocol = scheme?.[1] === "tcp" ? "tcp" : "web"
  const rest = scheme === null ? text : (scheme[2] ?? "")
  if (scheme !== null && protocol === "web") {
    const name = (scheme[1] ?? "").toLowerCase()
    const host = rest
      .replace(/[/?#].*$/, "")
      .replace(/^.*@/, "")
      .toLowerCase()
    if (name === "tcp") return refuse("the scheme is written in lower case", `tcp://${host}`)
    if (name === "http" || name === "https") return refuse("an entry is a host, not a URL", host)
    return refuse(`the scheme \`${shown(name, 20)}\` is not known; only \`tcp://host:port\` has one`, host)
  }
  if (rest.includes("@"))
    return refuse(
      "user names are not allowed in an entry",
      `${protocol === "tcp" ? "tcp://" : ""}${rest.replace(/^.*@/, "")}`,
    )
  if (/^[0-9a-fA-F.:]+\/[0-9]+$/.test(rest))
    return refuse(
      "address ranges (CIDR) are not supported; list names, or ask the operator for an `egress.private` grant",
    )
  if (/[/?#]/.test(rest))
    return refuse(
      "an entry has no path; it is a host and perhaps a port",
      `${protocol === "tcp" ? "tcp://" : ""}${rest.replace(/[/?#].*$/, "")}`,
    )
  if (/[\\^$()|+{},;'"`<>!&=~%]/.test(rest.replace(/^\[[^\]]*\]/, "")))
    return refuse("an entry is a plain host name; patterns and special characters are not supported")

  const prefix = protocol === "tcp" ? "tcp://" : ""
  const say = (host: string, port: string): string => `${prefix}${host}${port === "" ? "" : `:${port}`}`
  const split = splitPort(rest, say)
  if (isRefusal(split)) return split
  const port = split.port === undefined ? "" : String(split.port)
  const sayName = (name: string): string => say(name, port)
  const wrongWildcard = split.v6 ? undefined : checkWildcard(split.host, sayName)
  if (wrongWildcard !== undefined) return wrongWildcard
  const wildcard = split.host.startsWith("*.")
  const name = wildcard ? split.host.slice(2) : split.host
  const wrong =
    (split.v6 ? undefined : checkName(name, (fixed) => sayName(wildcard ? `*.${fixed}` : fixed))) ??
    checkAddress({ ...split, host: name }, say)
  if (wrong !== undefined) return wrong
  if (protocol === "tcp" && wildcard)
    return refuse("`tcp://` takes one exact host, no wildcard", `tcp://${name}${port === "" ? "" : `:${port}`}`)
  if (protocol === "tcp" && split.port === undefined)
    return refuse("`tcp://` needs a port, as in `tcp://db.example.com:5432`")
  return { ok: true, entry: entry(name, wildcard, split.port, protocol) }
}

/** Does an entry cover this canonical name? `*.x` covers one or more labels before x, never x itself (C-15). */
export const coversName = (rule: EgressEntry, name: string): boolean =>
  rule.wildcard ? name.endsWith(`.${rule.host}`) : name === rule.host

function intersectPair(a: EgressEntry, b: EgressEntry): EgressEntry[] {
  const [wide, narrow] = a.wildcard && (!b.wildcard || b.host.length >= a.host.length) ? [a, b] : [b, a]
  const sameSet = wide.wildcard === narrow.wildcard && wide.host === narrow.host
  const literal = isIPv4(narrow.host) || isIPv6(narrow.host)
  if (!sameSet && (literal || !coversName(wide, narrow.host))) return []
  const protocol = a.protocol === "tcp" && b.protocol === "tcp" ? "tcp" : "web"
  const ports = a.ports.filter((port) => b.ports.includes(port))
  if (ports.length === 0) return []
  if (ports.length === WEB_PORTS.length && protocol === "web")
    return [entry(narrow.host, narrow.wildcard, undefined, protocol)]
  return ports.map((port) => entry(narrow.host, narrow.wildcard, port, protocol))
}

/** Only what both lists allow (C-2). The result is free of duplicates and ordered by text. */
export function intersectEgress(a: readonly EgressEntry[], b: readonly EgressEntry[]): readonly EgressEntry[] {
  const found = new Map<string, EgressEntry>()
  for (const left of a) for (const right of b) for (const both of intersectPair(left, right)) found.set(both.text, both)
  return Object.freeze([...found.values()].sort((x, y) => (x.text < y.text ? -1 : 1)))
}
