/**
 * AUTH.md (AIP-50) → AuthProvider: how users of a service log in to it, whichever driver wants it.
 *
 * Guarantees: addresses are web addresses without user, query or fragment, and what is spoken to them is https, but in so
 * many words; a field that its flow has no use for is reported; the reserved flow is refused, unread. Where the
 * spec has no words (endpoints, an issuer, the flow by a page), ours are an extension that strict mode refuses.
 * Does not: ask anybody, nor name a secret of the host's: a manifest has no say in what is sent where.
 */
import { withoutEnd } from "../values/ends.ts"
import { readAddress } from "../values/address.ts"
import { type Context, sourceOf } from "../values/context.ts"
import { checkCredentials } from "../values/credentials.ts"
import { shown } from "../values/diagnostics.ts"
import { defined, object, optionalObject, optionalText, text } from "../values/fields.ts"
import { deepFreeze } from "../values/freeze.ts"
import { checkShape } from "../schema/shape.ts"
import type { JsonObject, ManifestSource } from "../base-types.ts"

export type ProviderFlow = "pat" | "service-auth" | "device-code" | "authorization-code"

/** Addresses of a provider, in the words of RFC 8414. */
export interface ProviderEndpoints {
  readonly authorization?: string
  readonly token?: string
  readonly deviceAuthorization?: string
  /** of the flow `service-auth`: where a person's approval is asked for */
  readonly identity?: string
  readonly revocation?: string
}

export interface AuthProvider {
  readonly kind: "auth"
  readonly id: string
  readonly description: string
  /** without a slash at its end; where discovery begins (AIP-50 §Discovery) */
  readonly apiBase: string
  /** the plane that its tokens are for; of no use on another */
  readonly audience?: string
  readonly flow: ProviderFlow
  readonly clientId: string
  readonly loginHint?: string
  readonly scopes: readonly string[]
  readonly deviceLabel?: string
  readonly issuer?: string
  readonly endpoints: ProviderEndpoints
  readonly resource?: string
  readonly source: ManifestSource
}

/** What AIP-50 has each flow say, beside `tokenStore`. */
const FIELDS: Readonly<Record<ProviderFlow, readonly string[]>> = {
  pat: [],
  "service-auth": ["clientId", "loginHint", "endpoints", "issuer"],
  "device-code": ["clientId", "scope", "deviceLabel", "endpoints", "issuer", "resource"],
  "authorization-code": ["clientId", "scope", "endpoints", "issuer", "resource"],
}
const OURS = ["issuer", "endpoints", "resource"]
const DEFAULT_CLIENT = "agentproto-cli"

function checkPlace(written: string | undefined, path: string, { report }: Context): void {
  if (written === undefined) return
  const address = readAddress(written)
  const fix = "write the full `https://…` address, without user, query or fragment"
  if (!address.ok) report.error("bad-value", path, address.message, fix)
  else if (written.includes("${")) report.error("bad-value", path, `\`${shown(written)}\` leaves a part open`, fix)
  else if (address.url.search !== "") report.error("bad-value", path, `\`${shown(written)}\` has a query`, fix)
  else if (address.url.protocol !== "https:")
    report.warn(
      "login-not-https",
      path,
      `\`${shown(written)}\` is not https; a token is asked for there only where the operator maps the name in \`egress.services\``,
      "write an `https://` address",
    )
}

function checkFlow(auth: JsonObject, flow: ProviderFlow, { mode, report }: Context): void {
  const own = Object.keys(auth).filter((key) => OURS.includes(key))
  const [first] = flow === "authorization-code" ? ["flow"] : own
  if (first !== undefined)
    (mode === "strict" ? report.error : report.lenient)(
      "auth-extension",
      `auth.${first}`,
      first === "flow" ? `the flow ${flow} is not one of AIP-50's` : `\`${first}\` is not a field of AIP-50's`,
      "write it in `logins` of caisson.yaml where other hosts are to read this manifest",
    )
  for (const key of Object.keys(auth))
    if (key !== "flow" && key !== "tokenStore" && !FIELDS[flow].includes(key))
      report.warn("field-unused", `auth.${key}`, `a login of the flow ${flow} does not use \`${key}\``, "remove it")
}

export function readProvider(front: JsonObject, context: Context): AuthProvider | undefined {
  const { report } = context
  checkCredentials(front, report)
  const auth = object(front, "auth")
  if (auth["flow"] === "id-jag") {
    report.error(
      "flow-reserved",
      "auth.flow",
      "`id-jag` is reserved in AIP-50; nothing says yet how such a login is done",
      "write `flow: device-code`, or another flow that the service has",
    )
    return undefined
  }
  if (!checkShape("auth", front, report)) return undefined
  const flow = text(auth, "flow") as ProviderFlow
  const endpoints = optionalObject(auth, "endpoints") ?? {}
  checkPlace(optionalText(front, "apiBase"), "apiBase", context)
  checkPlace(optionalText(auth, "issuer"), "auth.issuer", context)
  for (const name of Object.keys(endpoints))
    checkPlace(optionalText(endpoints, name), `auth.endpoints.${name}`, context)
  checkFlow(auth, flow, context)
  if (report.failed) return undefined
  return deepFreeze(
    defined({
      kind: "auth" as const,
      id: text(front, "id"),
      description: text(front, "description"),
      apiBase: withoutEnd(text(front, "apiBase"), "/"),
      audience: optionalText(front, "audience"),
      flow,
      clientId: optionalText(auth, "clientId") ?? DEFAULT_CLIENT,
      loginHint: optionalText(auth, "loginHint"),
      scopes: text(auth, "scope")
        .split(" ")
        .filter((scope) => scope !== ""),
      deviceLabel: optionalText(auth, "deviceLabel"),
      issuer: optionalText(auth, "issuer"),
      endpoints: defined({
        authorization: optionalText(endpoints, "authorization"),
        token: optionalText(endpoints, "token"),
        deviceAuthorization: optionalText(endpoints, "deviceAuthorization"),
        identity: optionalText(endpoints, "identity"),
        revocation: optionalText(endpoints, "revocation"),
      }),
      resource: optionalText(auth, "resource"),
      source: sourceOf(context, front),
    }),
  )
}
