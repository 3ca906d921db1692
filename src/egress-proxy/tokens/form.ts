/**
 * `application/x-www-form-urlencoded`, with the place of each value, so that one can be put in the place of another. Pure.
 *
 * Guarantees: every pair is listed, in order, also those that are named twice; nothing is thrown. `encodeField` writes a
 * value that every reader takes for the same.
 */
interface FormField {
  /** decoded */
  readonly name: string
  readonly value: string
  /** where the value stands, as written */
  readonly from: number
  readonly to: number
}

export function formFields(text: string): readonly FormField[] {
  const fields: FormField[] = []
  let at = 0
  for (const pair of text.split("&")) {
    const equals = pair.indexOf("=")
    const name = equals < 0 ? pair : pair.slice(0, equals)
    const from = equals < 0 ? at + pair.length : at + equals + 1
    const to = at + pair.length
    if (pair !== "") fields.push({ name: decoded(name), value: decoded(text.slice(from, to)), from, to })
    at = to + 1
  }
  return fields
}

/** Byte by byte, as Latin-1: tokens are ASCII, and what is no escape stays as it is. */
const decoded = (text: string): string =>
  text
    .replaceAll("+", " ")
    .replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))

export const encodeField = (value: string): string =>
  encodeURIComponent(value).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`)

/** The text with other values in these places, which do not overlap. */
export function spliced(
  text: string,
  places: readonly { readonly from: number; readonly to: number; readonly text: string }[],
): string {
  let at = 0
  let made = ""
  for (const place of [...places].sort((a, b) => a.from - b.from)) {
    made += text.slice(at, place.from) + place.text
    at = place.to
  }
  return made + text.slice(at)
}
