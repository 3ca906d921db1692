/**
 * The answer of a token endpoint → the same with placeholders in the place of its tokens. Pure.
 *
 * Guarantees: what passes holds none of the tokens that were found in it, and whatever is named like a token is one, at any
 * depth. An answer that brings tokens and cannot be read with certainty (no JSON and no form, a name given twice, another
 * charset, a token that is no text, too long or too short, or stands in an unknown shape) is refused and none of it passes. An
 * error passes when it can be read, or when nothing in it could be tokens to any reader.
 * Does not: know of tokens that are named otherwise.
 */
import type { NewToken, TokenKind, TokenLogin } from "./held.ts"
import { encodeField, formFields, spliced } from "./form.ts"
import { type JsonNumber, type JsonString, jsonStrings, plainName } from "./json.ts"
import { captureLimits } from "./limits.ts"

interface TokenAnswer {
  readonly status: number
  /** as sent, "" where there is none */
  readonly contentType: string
  /** decoded */
  readonly body: Buffer
  /** the request asked for tokens, so that an answer that is well must bring some */
  readonly asked: boolean
}

type ReadAnswer =
  | { readonly ok: false; readonly reason: string }
  | {
      readonly ok: true
      /** in their order */
      readonly tokens: readonly NewToken[]
      readonly expiresIn: number | undefined
      /** the body with the placeholders of a login that holds them */
      with(login: TokenLogin): Buffer
    }

const no = (reason: string): ReadAnswer => ({ ok: false, reason })
const asItIs = (body: Buffer): ReadAnswer => ({ ok: true, tokens: [], expiresIn: undefined, with: () => body })

/** Undefined: what is named so is no token. */
function kindOf(name: string): TokenKind | undefined {
  if (!/(token|tokens|assertion|jwt)$/.test(name)) return undefined
  if (name.endsWith("idtoken") || name === "idtokenjwt") return "id"
  return name.includes("refresh") ? "refresh" : "access"
}

interface Place {
  readonly token: NewToken
  readonly from: number
  readonly to: number
  readonly write: (placeholder: string) => string
}

export function readAnswer({ status, contentType, body, asked }: TokenAnswer, passId: boolean): ReadAnswer {
  const isWell = status >= 200 && status < 300
  if (!isWell && status < 400) return no("it leads elsewhere, where what it gives out would not be seen")
  if (status === 206) return no("it is a part of an answer")
  const isEmpty = body.length === 0
  if (isEmpty) return isWell && asked && status !== 204 ? no("it is empty") : asItIs(body)
  const charset = /charset\s*=\s*"?([^\s";,]*)/i.exec(contentType)?.[1]
  if (charset !== undefined && !/^(utf-?8|us-ascii|iso-8859-1)$/i.test(charset))
    return no("its charset is another than UTF-8")
  let text: string
  try {
    text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(body)
  } catch {
    return no("it is not UTF-8")
  }
  const isJson = /^\s*[[{]/.test(text) || /json/i.test(contentType)
  const isForm = !isJson && /^[\w.~%+*-]+=/.test(text.trim()) && !/<|\s/.test(text.trim())
  if (!isJson && !isForm) {
    // A gateway's page has no tokens; what reads like some and is neither is not guessed about.
    if ((isWell && asked) || /(token|assertion|jwt)\W{0,8}[:=]|eyJ[\w-]{8}/i.test(text))
      return no("it is neither JSON nor a form")
    return asItIs(body)
  }
  const found = isJson ? inJson(text, passId) : inForm(text, passId)
  if (!found.ok) return no(found.reason)
  const { places, expiresIn } = found
  const fault = places.map(({ token }) => faultOf(token.value)).find((reason) => reason !== undefined)
  if (fault !== undefined) return no(fault)
  if (places.length > captureLimits.tokens) return no("it has more tokens than one answer may")
  if (isWell && asked && places.length === 0 && !found.passed) return no("no token was found in it")
  if (places.length === 0) return { ok: true, tokens: [], expiresIn, with: () => body }
  return {
    ok: true,
    tokens: places.map(({ token }) => token),
    expiresIn,
    with: ({ tokens }) => {
      const made = places.map(({ token, from, to, write }) => {
        const held = tokens.find(({ kind, value }) => kind === token.kind && value === token.value)
        if (held === undefined) throw new TypeError("a token of the answer is not held")
        return { from, to, text: write(held.placeholder) }
      })
      return Buffer.from(spliced(text, made))
    },
  }
}

const faultOf = (value: string): string | undefined => {
  if (value.length < captureLimits.leastChars) return "a token in it is too short"
  if (value.length > captureLimits.tokenChars) return "a token in it is too long"
  return /^[\x20-\x7e]+$/.test(value) ? undefined : "a token in it has a character that no token has"
}

type Found =
  | { readonly ok: false; readonly reason: string }
  | {
      readonly ok: true
      readonly places: readonly Place[]
      readonly expiresIn: number | undefined
      /** something that is let through by name was there */
      readonly passed: boolean
    }

const life = (value: number): number | undefined =>
  Number.isFinite(value) && value >= 0 ? Math.min(Math.floor(value), captureLimits.lifeSeconds) : undefined

/** Is one of the names around it a token's? */
const isWithin = ({ within }: JsonString | JsonNumber): boolean =>
  within.split("/").some((name) => name !== "" && kindOf(name) !== undefined)

function inJson(text: string, passId: boolean): Found {
  const read = jsonStrings(text)
  if (!read.ok) return read
  const places: Place[] = []
  let passed = false
  for (const string of read.strings) {
    const { name, value, from, to } = string
    const kind = kindOf(name)
    if (kind === undefined) {
      if (isWithin(string)) return { ok: false, reason: "a token in it stands in a shape that is not known" }
      // A text within the text is read by whoever unpacks it.
      if (/token\\?["']\s*:|token=/i.test(value))
        return { ok: false, reason: "a token in it is packed into another text" }
      continue
    }
    if (value === "") continue
    if (kind === "id" && passId) passed = true
    else places.push({ token: { kind, value }, from, to, write: JSON.stringify })
  }
  if (read.numbers.some((number) => kindOf(number.name) !== undefined))
    return { ok: false, reason: "a token in it is a number" }
  const number = read.numbers.find(({ name, depth }) => name === "expiresin" && depth === 1)?.value
  const words = read.strings.find(({ name, depth }) => name === "expiresin" && depth === 1)?.value
  const expiresIn = life(number ?? (words !== undefined && /^[0-9]{1,12}$/.test(words) ? Number(words) : Number.NaN))
  return { ok: true, places, expiresIn, passed }
}

function inForm(text: string, passId: boolean): Found {
  // Some readers part a form at semicolons too.
  if (text.includes(";")) return { ok: false, reason: "it is a form that can be read in two ways" }
  const fields = formFields(text.trimEnd())
  const names = fields.map(({ name }) => name)
  if (new Set(names).size < names.length) return { ok: false, reason: "a field is named twice" }
  const places: Place[] = []
  let passed = false
  for (const { name, value, from, to } of fields) {
    const kind = kindOf(plainName(name))
    if (kind === undefined || value === "") continue
    if (kind === "id" && passId) passed = true
    else places.push({ token: { kind, value }, from, to, write: encodeField })
  }
  const expires = fields.find(({ name }) => plainName(name) === "expiresin")?.value ?? ""
  return { ok: true, places, expiresIn: life(/^[0-9]{1,12}$/.test(expires) ? Number(expires) : Number.NaN), passed }
}
