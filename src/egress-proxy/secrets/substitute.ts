/**
 * Puts secret values in the place of their placeholders: in the headers and for the hosts bound to the secret, nowhere else.
 *
 * Guarantees: a value appears in the returned headers only, never in a refusal. A placeholder in the method, path,
 * query, a header's name, a header that the secret is not bound to (`Authorization` unless it says otherwise), in another
 * encoding, or for a host that the secret is not bound to, is `secret_misuse` and nothing is substituted at all. `Authorization: Basic` is decoded,
 * substituted and encoded again, because git, npm and many others build it from what they are given. Replacement is
 * one pass: a value that looks like a placeholder is not replaced again. Values that could break out of a header
 * (CR, LF, NUL, other controls, characters beyond Latin-1) are refused when the set is prepared.
 * Assumes: the caller has checked that name, vetted address, SNI and authority agree.
 * Does not: look at what an upstream sends back; `scrub.ts` does, by the spellings that are handed out here.
 */
import type { EgressSubstitution } from "../types.ts"
import { findPlaceholder } from "./scanner.ts"
import { spellingsOf } from "./scrub.ts"
import { needlesForAll } from "./spellings.ts"

export { createPlaceholderScanner, type PlaceholderScanner } from "./scanner.ts"

/** Checked and ready; only `prepareSubstitutions` makes one. */
export interface Substitutions {
  readonly placeholders: readonly string[]
  /** whether any secret is bound to this host, that is, whether its TLS must be ended at the proxy */
  boundTo(host: string): boolean
  /** in lower case: headers that may carry a secret */
  readonly headers: ReadonlySet<string>
  /** how the values that are bound to this host may be spelled in what it sends back */
  spellingsFor(host: string): readonly Buffer[]
  apply(request: SubstitutionRequest): SubstitutionResult
  /** The misuse in a request that must not carry any secret, such as one in the clear, or undefined. */
  detect(request: Omit<SubstitutionRequest, "host">): Extract<SubstitutionResult, { ok: false }> | undefined
}

interface SubstitutionRequest {
  readonly method: string
  /** canonical host name the connection is vetted for */
  readonly host: string
  /** path and query as sent */
  readonly target: string
  readonly headers: readonly HeaderPair[]
}

export type HeaderPair = readonly [name: string, value: string]
export type MisusePlace = "method" | "target" | "header-name" | "header" | "host" | "body"

type SubstitutionResult =
  | { readonly ok: true; readonly headers: readonly HeaderPair[]; readonly used: readonly string[] }
  | { readonly ok: false; readonly reason: "secret_misuse"; readonly where: MisusePlace; readonly placeholder: string }

type PreparedSubstitutions =
  | { readonly ok: true; readonly substitutions: Substitutions }
  | { readonly ok: false; readonly reason: string }

const minPlaceholder = 8
/** These frame or route the message; a secret has no business in them. */
const structural = new Set([
  "host",
  "content-length",
  "content-type",
  "content-encoding",
  "transfer-encoding",
  "connection",
  "upgrade",
  "expect",
  "te",
  "trailer",
])

export function prepareSubstitutions(list: readonly EgressSubstitution[]): PreparedSubstitutions {
  const no = (reason: string): PreparedSubstitutions => ({ ok: false, reason })
  const seen: string[] = []
  for (const { placeholder, value, hosts, headers } of list) {
    if (!/^[\x21-\x7e]+$/.test(placeholder) || placeholder.length < minPlaceholder) {
      return no(`a placeholder is at least ${minPlaceholder} printable characters without spaces`)
    }
    if (seen.some((other) => other.includes(placeholder) || placeholder.includes(other))) {
      return no(`the placeholder ${placeholder} is given twice or is part of another`)
    }
    if (value === "") return no(`the secret for ${placeholder} is empty`)
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
    if (/[^\t\x20-\x7e\x80-\xff]/.test(value)) {
      return no(`the secret for ${placeholder} has a character that no header value may hold`)
    }
    if (value.includes(placeholder)) return no(`the secret for ${placeholder} is no secret`)
    if (hosts.some((host) => !/^[a-z0-9._-]+$/.test(host) || host.endsWith("."))) {
      return no(`the hosts of ${placeholder} are not canonical names`)
    }
    const unfit = headers?.find(
      (name) => !/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || structural.has(name.toLowerCase()),
    )
    if (unfit !== undefined) return no(`the header "${unfit}" cannot carry ${placeholder}`)
    seen.push(placeholder)
  }
  return { ok: true, substitutions: substitutionsOf(list.map(bound)) }
}

interface Bound {
  readonly placeholder: string
  readonly value: string
  readonly hosts: readonly string[]
  /** in lower case */
  readonly headers: ReadonlySet<string>
}
const bound = ({ placeholder, value, hosts, headers = ["authorization"] }: EgressSubstitution): Bound => ({
  placeholder,
  value,
  hosts: [...hosts],
  headers: new Set(headers.map((name) => name.toLowerCase())),
})

function substitutionsOf(list: readonly Bound[]): Substitutions {
  const placeholders = Object.freeze(list.map((one) => one.placeholder))
  const needles = needlesForAll(placeholders)
  const misuse = (where: MisusePlace, placeholder: string): SubstitutionResult => ({
    ok: false,
    reason: "secret_misuse",
    where,
    placeholder,
  })

  const apply = (request: SubstitutionRequest): SubstitutionResult => {
    if (placeholders.length === 0) return { ok: true, headers: request.headers, used: [] }
    const elsewhere = [
      ["method", request.method],
      ["target", request.target],
    ] as const
    for (const [where, text] of elsewhere) {
      const found = findPlaceholder(text, needles)
      if (found !== undefined) return misuse(where, found)
    }
    const mine = list.filter((one) => one.hosts.includes(request.host))
    const foreign = needles.filter((needle) => !mine.some((one) => one.placeholder === needle.placeholder))
    const used = new Set<string>()
    const headers: HeaderPair[] = []
    for (const [name, value] of request.headers) {
      // Names are compared without case, and so is a placeholder in one.
      const lower = name.toLowerCase()
      const inName = placeholders.find((placeholder) => lower.includes(placeholder.toLowerCase()))
      if (inName !== undefined) return misuse("header-name", inName)
      const basic = lower === "authorization" ? basicCredentials(value) : undefined
      const text = basic ?? value
      const wrongHost =
        findPlaceholder(text, foreign) ?? (basic === undefined ? undefined : findPlaceholder(value, foreign))
      if (wrongHost !== undefined) return misuse("host", wrongHost)
      const here = mine.filter((one) => one.headers.has(lower))
      const replaced = replace(text, here, used)
      // What is left is a placeholder in a header that is not its own, or in an encoding that is not undone.
      const rest = findPlaceholder(without(text, here), needles)
      if (rest !== undefined) return misuse("header", rest)
      if (basic === undefined) headers.push([name, replaced])
      else
        headers.push([name, replaced === basic ? value : `Basic ${Buffer.from(replaced, "latin1").toString("base64")}`])
    }
    return { ok: true, headers, used: [...used] }
  }

  const detect: Substitutions["detect"] = (request) => {
    // No secret is bound to the empty name.
    const result = apply({ ...request, host: "" })
    return result.ok ? undefined : result
  }

  const spellings = new Map<string, readonly Buffer[]>()
  const spellingsFor = (host: string): readonly Buffer[] => {
    const known = spellings.get(host)
    if (known !== undefined) return known
    const mine = list.filter((one) => one.hosts.includes(host))
    const made = mine.flatMap(({ value }) => spellingsOf(value))
    if (mine.length > 0) spellings.set(host, made)
    return made
  }

  return {
    placeholders,
    headers: new Set(list.flatMap((one) => [...one.headers])),
    spellingsFor,
    detect,
    boundTo: (host) => list.some((one) => one.hosts.includes(host)),
    apply,
  }
}

/** One pass from left to right, so that nothing a value contains is taken for a placeholder. */
function replace(text: string, list: readonly Bound[], used: Set<string>): string {
  // No placeholder is part of another, so the first to begin is the only one there.
  const next = list.map((one) => ({ one, at: text.indexOf(one.placeholder) }))
  const parts: string[] = []
  for (let from = 0; ; ) {
    let first: (typeof next)[number] | undefined
    for (const found of next) {
      if (found.at !== -1 && found.at < from) found.at = text.indexOf(found.one.placeholder, from)
      if (found.at !== -1 && (first === undefined || found.at < first.at)) first = found
    }
    if (first === undefined) return parts.length === 0 ? text : `${parts.join("")}${text.slice(from)}`
    parts.push(text.slice(from, first.at), first.one.value)
    used.add(first.one.placeholder)
    from = first.at + first.one.placeholder.length
  }
}

/** The text with raw placeholders cut out, a NUL in the place of each so that no new one is made by joining. */
function without(text: string, list: readonly Bound[]): string {
  return list.reduce((left, one) => left.replaceAll(one.placeholder, "\0"), text)
}

/** `user:password` of a Basic authorization, or undefined where it is none or not canonical base64. */
function basicCredentials(value: string): string | undefined {
  const encoded = /^basic +([A-Za-z0-9+/]+={0,2}) *$/i.exec(value)?.[1]
  if (encoded === undefined) return undefined
  const bytes = Buffer.from(encoded, "base64")
  return bytes.toString("base64") === encoded ? bytes.toString("latin1") : undefined
}
