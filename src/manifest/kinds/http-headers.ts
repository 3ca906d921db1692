/**
 * Headers that a driver sends → names in lower case with their templates.
 *
 * Guarantees: a name is a token, stands once, and is none that decides how a message is framed or where it goes; what the
 * author wrote of a value has no end of line in it; a credential is never a literal. Does not: put values in.
 */
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { text } from "../values/fields.ts"
import { perCall, readTemplate, type Template } from "../templates/template-tree.ts"
import type { JsonObject } from "../base-types.ts"

export interface HttpHeader {
  /** in lower case */
  readonly name: string
  readonly value: Template
}

const TOKEN = /^[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}$/
const OURS = new Set([
  "host",
  "content-length",
  "transfer-encoding",
  "connection",
  "keep-alive",
  "upgrade",
  "te",
  "trailer",
  "expect",
])
const CREDENTIAL = /^(?:authorization|cookie|(?:.*-)?(?:api-?key|token|secret|password))$/

/** The name as it is sent, or undefined when a driver may not choose it. */
export function headerName(written: string, path: string, context: Context): string | undefined {
  const name = written.toLowerCase()
  if (TOKEN.test(written) && !OURS.has(name) && !name.startsWith("proxy-")) return name
  context.report.error(
    "http-header",
    path,
    TOKEN.test(written) ? `\`${name}\` is set by the host` : `\`${shown(written, 40)}\` is not the name of a header`,
    TOKEN.test(written) ? "remove it" : "write a name such as `X-Request-Id`",
  )
  return undefined
}

export function readHeaders(block: JsonObject, path: string, context: Context): readonly HttpHeader[] {
  const seen = new Set<string>()
  return Object.keys(block).flatMap((written) => {
    const at = joinPath(path, written)
    const name = headerName(written, at, context)
    if (name === undefined) return []
    if (seen.has(name)) context.report.error("http-header", at, `\`${name}\` is set twice`, "keep one of them")
    seen.add(name)
    const value = readTemplate(text(block, written), at, perCall, context)
    const literals = value.parts.flatMap((part) => (part.type === "literal" ? [part.text] : []))
    if (literals.some((part) => /[^\t\u0020-\u007e]/.test(part)))
      context.report.error(
        "http-header",
        at,
        "a header's value has printable ASCII characters in one line",
        "remove the others",
      )
    if (CREDENTIAL.test(name) && value.text !== "" && value.parts.every((part) => part.type === "literal"))
      context.report.error(
        "plaintext-credential",
        at,
        `\`${name}\` gets a literal value in a manifest`,
        "write `${secrets.NAME}`, list the name in `auth.state.env` and keep the value in the vault",
      )
    return [{ name, value }]
  })
}
