/**
 * What a program's own login waits for on a loopback port, as the address tells that it printed or sent the browser to.
 *
 * Guarantees: pure. Only plain http on this machine's loopback, at a port that a program could open itself. What a
 * provider sends back counts by the path and the `state` that were named to that provider beforehand; an address that names
 * no state has no callback, because its answer could not be told from a stranger's.
 */
import { timingSafeEqual } from "node:crypto"

export interface Named {
  /** as it stands in the address: `127.0.0.1`, `localhost` or `[::1]` */
  readonly name: string
  readonly port: number
  readonly take: Take
}
/** One request that may come: this very target, or an answer at that path with that state. */
export type Take =
  | { readonly kind: "exact"; readonly target: string }
  | { readonly kind: "answer"; readonly path: string; readonly state: string }

const names: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"])
const LOWEST_PORT = 1_024
const SHORTEST_STATE = 8

const onLoopback = (url: URL): boolean =>
  url.protocol === "http:" &&
  names.has(url.hostname) &&
  Number(url.port) >= LOWEST_PORT &&
  url.username === "" &&
  url.password === ""

const only = (values: readonly string[]): string | undefined => (values.length === 1 ? values[0] : undefined)

export const namedIn = (text: string): Named | undefined => {
  const address = URL.parse(text)
  if (address === null) return undefined
  if (onLoopback(address)) {
    const take = { kind: "exact", target: address.pathname + address.search } as const
    return { name: address.hostname, port: Number(address.port), take }
  }
  const redirect = only(address.searchParams.getAll("redirect_uri"))
  const state = only(address.searchParams.getAll("state"))
  const back = redirect === undefined ? null : URL.parse(redirect)
  if (back === null || state === undefined || state.length < SHORTEST_STATE || !onLoopback(back)) return undefined
  return { name: back.hostname, port: Number(back.port), take: { kind: "answer", path: back.pathname, state } }
}

export const sameText = (one: string, other: string): boolean => {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}

/** Undefined: this is what was waited for. */
export const faultOf = (take: Take, came: URL): "forged" | undefined | "other" => {
  if (take.kind === "exact") return came.pathname + came.search === take.target ? undefined : "other"
  if (came.pathname !== take.path) return "other"
  const state = only(came.searchParams.getAll("state"))
  return state !== undefined && sameText(state, take.state) ? undefined : "forged"
}
