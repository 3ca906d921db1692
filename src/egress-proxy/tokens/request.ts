/**
 * A request to a token endpoint → the same with tokens in the place of their placeholders. Pure.
 *
 * Guarantees: a placeholder is turned back where it is the whole value of the field `refresh_token` or `token`, once, in a
 * form or at the top of a JSON object; anywhere else, in another spelling, or in a body that two readers could read
 * differently, it is a misuse and nothing is turned back at all. An access token is turned back in `token` alone, to be
 * taken back or looked up.
 */
import type { HeldToken, TokenLogin } from "./held.ts"
import { encodeField, formFields, spliced } from "./form.ts"
import { jsonStrings } from "./json.ts"
import { findPlaceholder } from "../secrets/scanner.ts"
import { needlesForAll } from "../secrets/spellings.ts"

type TurnedBack =
  | { readonly ok: false; readonly placeholder: string }
  | {
      readonly ok: true
      readonly body: Buffer
      /** whose refresh token was turned back */
      readonly login: TokenLogin | undefined
      readonly used: readonly string[]
    }

interface Field {
  readonly name: string
  readonly value: string
  readonly from: number
  readonly to: number
}

const fits = (field: string, { kind }: HeldToken): boolean =>
  field === "refresh_token" ? kind === "refresh" : field === "token" && kind !== "id"

export function turnBack(body: Buffer, contentType: string, logins: readonly TokenLogin[]): TurnedBack {
  const held = logins.flatMap((login) => login.tokens.map((token) => ({ login, token })))
  const text = body.toString("latin1")
  const { fields, write } = fieldsOf(text, contentType)
  const places: { from: number; to: number; text: string }[] = []
  const used: string[] = []
  let login: TokenLogin | undefined
  for (const { name, value, from, to } of fields) {
    if (fields.filter((other) => other.name === name).length > 1) continue
    const found = held.find(({ token }) => token.placeholder === value)
    if (found === undefined || !fits(name, found.token)) continue
    places.push({ from, to, text: write(found.token.value) })
    used.push(found.token.placeholder)
    if (name === "refresh_token") login = found.login
  }
  // What is left of the body, with a sign in each place that no placeholder has.
  const rest = spliced(
    text,
    places.map(({ from, to }) => ({ from, to, text: "\0" })),
  )
  const left = findPlaceholder(rest, needlesForAll(held.map(({ token }) => token.placeholder)))
  if (left !== undefined) return { ok: false, placeholder: left }
  return { ok: true, body: places.length === 0 ? body : Buffer.from(spliced(text, places), "latin1"), login, used }
}

function fieldsOf(text: string, contentType: string): { fields: readonly Field[]; write: (value: string) => string } {
  if (/^\s*application\/x-www-form-urlencoded\s*(;|$)/i.test(contentType) && !text.includes(";"))
    return { fields: formFields(text), write: encodeField }
  if (/^\s*application\/(?:[\w.+-]+\+)?json\s*(;|$)/i.test(contentType)) {
    const read = jsonStrings(text)
    const top = read.ok ? read.strings.filter(({ depth, within }) => depth === 1 && within === "") : []
    // Names as they are written: a reader that tells them apart and one that does not must see the same.
    const named = top.map((string) => ({
      ...string,
      name: `${string.name.replace(/token$/, "_token").replace(/^_/, "")}`,
    }))
    return { fields: named, write: JSON.stringify }
  }
  return { fields: [], write: encodeField }
}
