/** `store` of a config file: where the host remembers what outlives its processes, if not in the data folder. Pure. */
import type { Report } from "../../manifest/values/diagnostics.ts"

export interface StoreConfig {
  /** absolute path of a file that holds the server's URL, password and all */
  readonly urlFile: string
  /** is a server beyond this machine spoken to by TLS, and its certificate checked */
  readonly verify: boolean
  /** absolute path of a PEM file */
  readonly caFile?: string
  /** sessions at once; absent: the default */
  readonly connections?: number
}

export interface StoreSettings {
  readonly postgres?: {
    readonly url_file: string
    readonly ca_file?: string
    readonly tls?: "verify" | "off"
    readonly connections?: number
  }
}

export const storeOf = (
  written: StoreSettings | undefined,
  path: (text: string) => string,
  report: Report,
): { readonly store?: StoreConfig } => {
  const { postgres } = written ?? {}
  if (postgres === undefined) return {}
  const { url_file: url, ca_file: ca, tls = "verify", connections } = postgres
  if (tls === "off" && ca !== undefined)
    report.error(
      "config-value",
      "store.postgres",
      "`tls: off` and `ca_file` contradict each other",
      "leave one of them out",
    )
  return {
    store: Object.freeze({
      urlFile: path(url),
      verify: tls === "verify",
      ...(ca === undefined ? {} : { caFile: path(ca) }),
      ...(connections === undefined ? {} : { connections }),
    }),
  }
}
