/**
 * `vault` of a config file: where secrets are kept, if not in the data folder. Pure.
 *
 * Guarantees: a server is spoken to by TLS, or on a loopback address; what signs this host in is named by files, never
 * written in the config; there is exactly one way to sign in.
 */
import ipaddr from "ipaddr.js"
import type { Report } from "../../manifest/values/diagnostics.ts"
import type { KvSettings, OperatorConfig } from "./types.ts"

export interface VaultSettings {
  readonly kv?: {
    readonly address: string
    readonly mount?: string
    readonly prefix?: string
    readonly namespace?: string
    readonly ca_file?: string
    readonly token_file?: string
    readonly app_role?: { readonly role_id_file: string; readonly secret_id_file: string; readonly mount?: string }
  }
}

const isLoopback = (hostname: string): boolean => {
  const host = hostname.replace(/^\[|\]$/g, "")
  return host === "localhost" || (ipaddr.isValid(host) && ipaddr.parse(host).range() === "loopback")
}

const addressOf = (text: string, report: Report): string | undefined => {
  const url = URL.parse(text)
  const fault = (message: string): undefined => {
    report.error(
      "config-value",
      "vault.kv.address",
      message,
      "write an address such as https://vault.example.com:8200/",
    )
  }
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) return fault("this is no web address")
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "")
    return fault("an address of a vault holds neither credentials nor a query")
  if (url.protocol === "http:" && !isLoopback(url.hostname))
    return fault("secrets are not sent in the clear beyond this machine")
  return url.href.endsWith("/") ? url.href : `${url.href}/`
}

const authOf = (
  { token_file: token, app_role: role }: NonNullable<VaultSettings["kv"]>,
  path: (text: string) => string,
  report: Report,
): KvSettings["auth"] | undefined => {
  if ((token === undefined) === (role === undefined)) {
    report.error(
      "config-value",
      "vault.kv",
      "this host signs in to a vault in exactly one way",
      "write either `token_file: PATH` or `app_role: { role_id_file: PATH, secret_id_file: PATH }`",
    )
    return undefined
  }
  if (token !== undefined) return { by: "token", tokenFile: path(token) }
  const { role_id_file: id = "", secret_id_file: secret = "", mount = "approle" } = role ?? {}
  return { by: "app-role", mount, roleIdFile: path(id), secretIdFile: path(secret) }
}

export const vaultOf = (
  written: VaultSettings | undefined,
  path: (text: string) => string,
  report: Report,
): Pick<OperatorConfig, "vault"> => {
  const kv = written?.kv
  if (kv === undefined) return {}
  const address = addressOf(kv.address, report)
  const auth = authOf(kv, path, report)
  if (address === undefined || auth === undefined) return {}
  return {
    vault: Object.freeze({
      address,
      mount: kv.mount ?? "secret",
      prefix: kv.prefix ?? "caisson",
      ...(kv.namespace === undefined ? {} : { namespace: kv.namespace }),
      ...(kv.ca_file === undefined ? {} : { caFile: path(kv.ca_file) }),
      auth,
    }),
  }
}
