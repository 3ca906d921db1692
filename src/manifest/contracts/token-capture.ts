/**
 * `metadata.oauth` of a driver: where its own program gets tokens, and where they are meant for. An extension of ours.
 *
 * Guarantees: endpoints are https addresses in the one spelling that a request is compared with; anything else is reported.
 */
import type { Context } from "../values/context.ts"
import { shown } from "../values/diagnostics.ts"
import { object, optionalObject, texts } from "../values/fields.ts"
import type { JsonObject } from "../base-types.ts"
import type { AuthSpec } from "../kinds/auth.ts"
import { type TokenCapture, tokenEndpoint } from "../values/token-endpoint.ts"

const HOST = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_-]{1,63})+$/

export function readTokenCapture(metadata: JsonObject, { report }: Context): TokenCapture | undefined {
  if (optionalObject(metadata, "oauth") === undefined) return undefined
  const oauth = object(metadata, "oauth")
  const endpoints = texts(oauth, "token_endpoints").flatMap((address, index) => {
    const read = tokenEndpoint(address)
    if (read === undefined)
      report.error(
        "bad-value",
        `metadata.oauth.token_endpoints[${index}]`,
        `\`${shown(address)}\` is no address of a token endpoint`,
        "write `https://host/path` in lower-case host letters, without escapes, dots, query or fragment",
      )
    return read === undefined ? [] : [read]
  })
  const hosts = texts(oauth, "hosts")
  const unfit = hosts.findIndex((host) => !HOST.test(host))
  if (unfit >= 0)
    report.error(
      "bad-value",
      `metadata.oauth.hosts[${unfit}]`,
      `\`${shown(hosts[unfit] ?? "")}\` is no plain host name`,
      "write a name in lower case, as in `api.example.com`",
    )
  return { endpoints, hosts, idToken: oauth["id_token"] === true ? "pass" : "replace" }
}

/** A program that logs in by itself is run only where it is known which endpoint gives out its tokens. */
export function checkTokensNamed(
  auth: AuthSpec | undefined,
  capture: TokenCapture | undefined,
  { report }: Pick<Context, "report">,
): void {
  const { issuer, endpoints } = auth?.provider ?? {}
  const at = auth?.login?.cmd !== undefined ? "login" : auth?.refresh?.via === "cmd" ? "refresh" : undefined
  if (at === undefined || issuer === undefined || endpoints?.token !== undefined) return
  if ((capture?.endpoints.length ?? 0) > 0) return
  report.warn(
    "token-endpoint-unnamed",
    `auth.${at}.cmd`,
    `its program gets tokens by itself, and its AUTH.md names \`${shown(issuer)}\` without the endpoint that gives them out; it is not run, since they could not be kept out of its sandbox`,
    "write `endpoints: { token: https://… }` in the `auth` of the AUTH.md, or `metadata.oauth.token_endpoints` in this file",
  )
}
