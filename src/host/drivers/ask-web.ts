/**
 * One question of the host's own to a web server, by the way of drivers that talk to services.
 *
 * Guarantees: the connection is made by `connect` and by nothing else; TLS proves the host that was asked. Whether asking
 * again may help is said with every failure.
 */
import { portOf } from "../../manifest/values/address.ts"
import type { AskRequest, InstallAnswer, WebAnswer } from "../install/types.ts"
import { exchange } from "./http/exchange.ts"
import type { Desk } from "./kind.ts"

const first = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === "string" ? value : value?.[0]

export const askWeb = async (
  outlet: Desk["outlet"],
  { url, headers }: Omit<AskRequest, "egress">,
  signal: AbortSignal,
): Promise<InstallAnswer<WebAnswer>> => {
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1")
  const asked = await exchange(
    { signal, outlet },
    { host, port: portOf(url), secure: url.protocol === "https:" },
    { method: "GET", path: url.pathname + url.search, headers: [["host", url.host], ...Object.entries(headers)] },
  )
  if (!asked.ok) {
    const { code, retryable, ...failure } = asked
    return { ...failure, code: "install_failed", retryable: code === "upstream_error" && retryable !== false }
  }
  const answer = asked.value
  const named = Object.entries(answer.headers).map(([name, value]) => [name.toLowerCase(), first(value)])
  return {
    ok: true,
    value: {
      status: answer.status,
      headers: Object.fromEntries(named) as WebAnswer["headers"],
      body: answer.body as AsyncIterable<Uint8Array>,
      [Symbol.asyncDispose]: () => answer[Symbol.asyncDispose](),
    },
  }
}
