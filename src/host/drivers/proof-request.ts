/**
 * One question to an address, with the credentials that the driver's own requests have: the proof of a login by HTTP.
 *
 * Guarantees: goes the way of a sandbox's connections, to declared hosts alone; TLS is verified; no redirect is followed.
 * Credentials go to the origin that a driver of kind http talks to, and to no other; a driver of another kind has none
 * that the host could send. What is read of the answer is bounded.
 */
import { secretsIn } from "../../manifest/templates/template-tree.ts"
import { portOf } from "../../manifest/values/address.ts"
import type { DriverContract, HttpProbe } from "../../manifest/types.ts"
import { fillTree } from "../invoke/template-tree.ts"
import { readableOf, readUpTo } from "./http/body.ts"
import { exchange } from "./http/exchange.ts"
import type { Desk } from "./kind.ts"

type Header = readonly [name: string, value: string]

const PRINTABLE = /^[\t\u0020-\u007e]*$/

/** The headers that every request of the driver has, as far as they are the same whatever is asked. */
const credentials = (contract: DriverContract, secret: (name: string) => string | undefined): readonly Header[] => {
  if (contract.body.kind !== "http") return []
  const { defaultHeaders } = contract.body.http
  const lines = defaultHeaders.flatMap(({ name, value }): readonly Header[] => {
    const made = fillTree({ type: "text", ...value }, { input: {}, context: {}, secret })
    return made.ok && typeof made.value === "string" && PRINTABLE.test(made.value) ? [[name, made.value]] : []
  })
  const [only, more] = contract.auth?.state.env ?? []
  const isSaid = secretsIn(contract.body).size > 0 || defaultHeaders.some(({ name }) => name === "authorization")
  const bearer = isSaid || only === undefined || more !== undefined ? undefined : secret(only)
  if (bearer === undefined || !/^[\u0021-\u007e]+$/.test(bearer)) return lines
  return [...lines, ["authorization", `Bearer ${bearer}`]]
}

/** Whether an address is asked with the driver's own credentials. */
export const hasCredentialsFor = ({ body }: DriverContract, address: string): boolean =>
  body.kind === "http" && body.http.base.origin === URL.parse(address)?.origin

interface ProofQuestion extends Pick<Desk, "outlet" | "signal"> {
  readonly contract: DriverContract
  readonly probe: HttpProbe
  /** the value of a secret that may be sent to this host */
  readonly secret: (name: string, host: string) => string | undefined
  /** of the answer */
  readonly bodyBytes: number
}

type Asked =
  | { readonly ok: true; readonly status: number; readonly body: string }
  | { readonly ok: false; readonly reason: string }

export const askAsDriver = async ({ contract, probe, secret, bodyBytes, ...desk }: ProofQuestion): Promise<Asked> => {
  const url = new URL(probe.url)
  const host = url.hostname.replace(/^\[|\]$/g, "")
  const headers: readonly Header[] = [
    ["accept", "application/json, */*"],
    ["user-agent", "caisson"],
    ...(hasCredentialsFor(contract, probe.url) ? credentials(contract, (name) => secret(name, host)) : []),
  ]
  const origin = { secure: url.protocol === "https:", host, port: portOf(url) }
  const body = probe.method === "POST" ? { body: Buffer.alloc(0) } : {}
  const request = { method: probe.method, path: url.pathname + url.search, headers, ...body }
  const made = await exchange(desk, origin, request)
  if (!made.ok) return { ok: false, reason: made.message }
  await using answer = made.value
  const readable = readableOf(answer, [])
  const parts: Buffer[] = []
  const read = readable.ok ? await readUpTo(readable.value, bodyBytes, (chunk) => parts.push(chunk) > 0) : undefined
  const text = read?.ok === true ? Buffer.concat(parts).toString("utf8") : ""
  return { ok: true, status: answer.status, body: text }
}
