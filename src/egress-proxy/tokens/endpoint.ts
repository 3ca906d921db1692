/**
 * Is this request one to a token endpoint, or one that a server could take for it? Pure.
 *
 * Guarantees: a target that is the endpoint's path, with or without a query, is the endpoint; one that some server could
 * read as that path (escapes, dot segments, doubled or backward slashes, parameters, a last slash, another case) is an
 * `alias`, and is to be refused: what comes back from it would not be looked at. So is one that names its path in a header,
 * or that goes to another port of the same host.
 * Does not: know of other paths at which a provider gives out tokens; `asksForTokens` finds such requests by what they ask.
 */
import type { TokenEndpoint } from "../../manifest/values/token-endpoint.ts"
import type { HeaderPair } from "../secrets/substitute.ts"
import { formFields } from "./form.ts"
import { jsonStrings } from "./json.ts"

type Aim = "elsewhere" | "endpoint" | "alias"

/** Headers by which servers let a request be for another path than the one that it is sent to. */
const rerouting = new Set(["x-original-url", "x-rewrite-url", "x-original-uri", "x-forwarded-uri", "x-forwarded-path"])

export function aimOf(
  endpoints: readonly TokenEndpoint[],
  place: { readonly host: string; readonly port: number },
  { target, headers }: { readonly target: string; readonly headers: readonly HeaderPair[] },
): Aim {
  const here = endpoints.filter(({ host }) => host === place.host)
  if (here.length === 0) return "elsewhere"
  if (headers.some(([name]) => rerouting.has(name.toLowerCase().replaceAll("_", "-")))) return "alias"
  const [path = ""] = target.split("?", 1)
  if (here.some((endpoint) => endpoint.path === path && endpoint.port === place.port)) return "endpoint"
  const read = loosely(path)
  return read === undefined || here.some((endpoint) => loosely(endpoint.path) === read) ? "alias" : "elsewhere"
}

/** As the most lenient server would read it; undefined where it is escaped without end. */
function loosely(path: string): string | undefined {
  let text = path
  for (let depth = 0; /%[0-9a-f]{2}/i.test(text); depth += 1) {
    if (depth === 4) return undefined
    text = text.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
  }
  const parts: string[] = []
  // What ends a path for one server is a sign like any other for the next.
  const plain = (text.split(/[?#\0]/, 1)[0] ?? "").replaceAll("\\", "/")
  for (const segment of plain.split("/")) {
    const name = (segment.split(";", 1)[0] ?? "").trim().toLowerCase()
    if (name === "" || name === ".") continue
    if (name === "..") parts.pop()
    else parts.push(name)
  }
  return parts.join("/")
}

/** Does this ask for tokens, in the words of OAuth, wherever it is sent to? */
export function asksForTokens(target: string, contentType: string, body: Buffer): boolean {
  const query = target.indexOf("?")
  if (query >= 0 && hasGrant(target.slice(query + 1))) return true
  if (body.length === 0) return false
  const text = body.toString("latin1")
  if (/^[\s\ufeff\u00ef\u00bb\u00bf]*[[{]/.test(text)) {
    const read = jsonStrings(text)
    return read.ok ? read.strings.some(({ name }) => name === "granttype") : /grant/i.test(text)
  }
  if (/multipart\//i.test(contentType)) return /name\s*\*?\s*=\s*[^;\r\n]*grant_type/i.test(text)
  return hasGrant(text)
}

const hasGrant = (text: string): boolean =>
  formFields(text.replaceAll(";", "&")).some(({ name }) => /^\s*grant_type/i.test(name))
