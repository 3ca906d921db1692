/** What a case is, and the words that cases are written with. */
import type { ReasonCode } from "../../../src/egress-proxy/policy/reasons.ts"
import { alpn, hello, serverName } from "../../egress-proxy/tls/hello-bytes.ts"

export const corpusPolicy = {
  egress: ["api.good.test:443", "*.cdn.good.test:443", "plain.good.test:80", "tcp://db.good.test:5432"],
} as const

export const publicAddress = "93.184.216.34"

export interface EgressCase {
  readonly row: number
  readonly name: string
  readonly send: string
  readonly inside?: string
  readonly reason: ReasonCode
  /** what the resolver answers for any name; default one public address */
  readonly answer?: readonly string[] | "fails"
  /** raw bytes that the upstream answers a request head with */
  readonly upstream?: string
  readonly readOnly?: boolean
  /** the proxy's own address and port stand for `SELF` in `send`; only the wire knows them */
  readonly wireOnly?: true
  readonly upstreamHas?: readonly string[]
  readonly upstreamLacks?: readonly string[]
  readonly clientHas?: readonly string[]
  readonly clientLacks?: readonly string[]
}

export const connect = (target: string, ...headers: readonly string[]): string =>
  `CONNECT ${target} HTTP/1.1\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`
export const get = (url: string, ...headers: readonly string[]): string =>
  `GET ${url} HTTP/1.1\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`
export const plain = (...headers: readonly string[]): string =>
  get("http://plain.good.test/", "Host: plain.good.test", ...headers)
export const post = (...headers: readonly string[]): string =>
  `POST http://plain.good.test/ HTTP/1.1\r\nHost: plain.good.test\r\n${headers.map((line) => `${line}\r\n`).join("")}\r\n`
export const latin = (bytes: Buffer): string => bytes.toString("latin1")
export const utf8 = (text: string): string => latin(Buffer.from(text, "utf8"))
export const socksName = (name: string, port: number, command = 1): string =>
  latin(
    Buffer.concat([
      Buffer.from([5, 1, 0, 5, command, 0, 3, name.length]),
      Buffer.from(name, "latin1"),
      Buffer.from([port >> 8, port & 255]),
    ]),
  )
export const socksV4 = (octets: readonly number[], port: number): string =>
  latin(Buffer.from([5, 1, 0, 5, 1, 0, 1, ...octets, port >> 8, port & 255]))
export const helloFor = (...names: readonly string[]): string =>
  latin(hello({ extensions: [serverName(...names), alpn("h2", "http/1.1")] }))

export type Extra = Omit<EgressCase, "row" | "name" | "send" | "reason">
export const one = (row: number, name: string, send: string, reason: ReasonCode, extra: Extra = {}): EgressCase => ({
  row,
  name,
  send,
  reason,
  ...extra,
})
export const connects = (row: number, what: string, targets: readonly string[], reason: ReasonCode): EgressCase[] =>
  targets.map((target) =>
    one(
      row,
      `${what}: CONNECT ${JSON.stringify(target.length > 60 ? `${target.slice(0, 57)}…` : target)}`,
      connect(target),
      reason,
    ),
  )
export const okResponse = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
