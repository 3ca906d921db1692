/**
 * Web addresses in manifests → a parsed one, or why not.
 *
 * Guarantees: an address that comes out is http or https, names its host in full (no template stands in the authority, so
 * that no input can choose it), and carries no user, password, fragment, blank or backslash. Templates elsewhere are
 * kept as they stand in `text`; `url` is the address with each of them read as `x`.
 */
import type { Context } from "./context.ts"
import { shown } from "./diagnostics.ts"
import { coversName, type EgressEntry } from "./egress-entry.ts"

type Address =
  | { readonly ok: true; readonly text: string; readonly url: URL }
  | { readonly ok: false; readonly message: string }

const TEMPLATE = /\$\{[^{}]*\}/g
/** scheme and authority: up to the first `/`, `?` or `#` behind `://` */
const AUTHORITY = /^https?:\/\/([^/?#]+)/i

export function readAddress(text: string): Address {
  const no = (message: string): Address => ({ ok: false, message: `\`${shown(text)}\` ${message}` })
  if (/[\u0000-\u0020\u007f\\…]/.test(text.replaceAll(TEMPLATE, "x"))) return no("is not an address")
  const authority = AUTHORITY.exec(text)?.[1]
  if (authority === undefined) return no("is not a web address")
  if (/[${}]/.test(authority)) return no("leaves its host open; an address in a manifest names one")
  if (authority.includes("@")) return no("carries a user or password")
  const url = URL.parse(text.replaceAll(TEMPLATE, "x"))
  if (url === null || url.hostname === "") return no("is not an address")
  if (url.hash !== "" || text.includes("#")) return no("has a fragment, which no server sees")
  return { ok: true, text, url }
}

/** The port that an address means, said or not. */
export const portOf = (url: URL): number =>
  url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)

/** Would the declared egress let this address through? */
const reaches = (egress: readonly EgressEntry[], url: URL): boolean =>
  egress.some((entry) => coversName(entry, url.hostname) && entry.ports.includes(portOf(url)))

/** What stands at `path` is asked for by the driver itself, so its host must be among those it declares. */
export function checkReach(url: URL, path: string, egress: readonly EgressEntry[], context: Context): void {
  if (reaches(egress, url)) return
  context.report.warn(
    "address-not-in-egress",
    path,
    `\`${shown(url.host, 60)}\` is not in \`network.egress\`; it cannot be reached`,
    `add \`${shown(url.host, 60)}\` to \`network.egress\``,
  )
}
