/** How a request is named and known again. Pure. */
import { redactPath, type Scrub } from "./redact.ts"
import type { TapeExchange, TapeHeader, TapeTarget } from "./words.ts"

export const headerOf = (headers: readonly TapeHeader[], name: string): string =>
  headers
    .filter(([key]) => key.toLowerCase() === name)
    .map(([, value]) => value)
    .join(",")

const originOf = ({ host, port, secure }: TapeTarget): string => {
  const name = host.includes(":") ? `[${host}]` : host
  return `${secure ? "https" : "http"}://${name}:${port}`
}

export const addressOf = (target: TapeTarget, path: string, scrub: Scrub, seen: (value: string) => void): string =>
  `${originOf(target)}${scrub.text(redactPath(path, seen))}`

const withoutScheme = (url: string): string => url.replace(/^https?:\/\//, "")

type Asked = Pick<TapeExchange, "method" | "url" | "range" | "sent">

export const keyOf = ({ method, url, range = "", sent }: Asked): string =>
  [method, withoutScheme(url), range, sent.bytes === 0 ? "" : sent.digest].join("\n")

const placeOf = (url: string): { readonly host: string; readonly path: string } => {
  const bare = withoutScheme(url)
  const at = bare.indexOf("/")
  return { host: bare.slice(0, at), path: bare.slice(at).split("?")[0] ?? "" }
}

/** As much of two addresses as is compared: a recording may be somebody else's, and hold thousands of long ones. */
const LIKENESS = 900
const common = (one: string, other: string): number => {
  let at = 0
  while (at < LIKENESS && at < one.length && one[at] === other[at]) at += 1
  return at
}

/** The recorded request that is most like this one, and in what it differs. */
export const nearestTo = (
  asked: Asked,
  recorded: readonly TapeExchange[],
): { readonly exchange: TapeExchange; readonly differs: string } | undefined => {
  const wanted = placeOf(asked.url)
  let best: { exchange: TapeExchange; score: number } | undefined
  for (const exchange of recorded) {
    const place = placeOf(exchange.url)
    const score =
      (place.host === wanted.host ? 10_000 : 0) +
      (place.path === wanted.path ? 5_000 : 0) +
      (exchange.method === asked.method ? 1_000 : 0) +
      common(withoutScheme(exchange.url), withoutScheme(asked.url))
    if (best === undefined || score > best.score) best = { exchange, score }
  }
  if (best === undefined) return undefined
  const { exchange } = best
  const parts = [
    ...(exchange.method === asked.method ? [] : ["method"]),
    ...(withoutScheme(exchange.url) === withoutScheme(asked.url) ? [] : ["address"]),
    ...((exchange.range ?? "") === (asked.range ?? "") ? [] : ["range"]),
    ...(exchange.sent.digest === asked.sent.digest ? [] : ["body"]),
  ]
  return { exchange, differs: parts.length === 0 ? "it was answered as often as recorded" : parts.join(" and ") }
}
