/**
 * A connection for code of this process, which has no sandbox around it.
 *
 * Guarantees: it goes the way of a sandbox's: the same decision, budgets, resolver, vetting, connector, record and cuts;
 * there is no other way for it. What is said to be sent over it is held to `readOnlyHttp` before anything is resolved.
 * Whoever drops its own end drops the upstream; an upstream that breaks off is an error of that end, never its end.
 * Does not: look at what is sent; the code is ours, and the name that TLS must prove is its own matter.
 */
import { type Duplex, duplexPair } from "node:stream"
import type { ByteSource } from "../connection/byte-source.ts"
import type { Gate } from "../dial/gate.ts"
import type { Header } from "../http/head.ts"
import { isOverridden, isSafeMethod } from "../http/method.ts"
import { type Authority, authorityOf, parseHost } from "../policy/authority.ts"
import type { ReasonCode } from "../policy/reasons.ts"
import { relayTunnel } from "../relay/relay.ts"
import type { Verdict } from "../types.ts"

/** The head of the request that the connection is for. */
export interface HostedRequest {
  readonly method: string
  /** with its query */
  readonly path: string
  readonly headers: readonly Header[]
}

export interface HostedDial {
  readonly host: string
  readonly port: number
  readonly sends?: HostedRequest
  /** ends the dialling; a connection that stands is ended by destroying it */
  readonly signal?: AbortSignal
}

export type Dialled =
  | {
      readonly ok: true
      readonly connection: Duplex
      readonly address: string
      /** what a rule that only reports would have refused it with */
      readonly report?: ReasonCode
      /** it answers from a recording: in the clear, whatever the host would speak */
      readonly plain?: true
    }
  | { readonly ok: false; readonly verdict: Verdict }

/** Two ends of one connection: neither outlives the other, and what breaks one is an error of the other. */
export function hostedPair(): { readonly near: Duplex; readonly far: Duplex } {
  const [near, far] = duplexPair()
  const silent = (): void => {}
  near.on("error", silent)
  far.on("error", silent)
  near.once("close", () => far.destroy())
  far.once("close", () => {
    const isOver = near.readableEnded && near.writableFinished
    near.destroy(isOver ? undefined : Object.assign(new Error("the connection broke off"), { code: "ECONNRESET" }))
  })
  return { near, far }
}

const targetOf = ({ host, port }: HostedDial): Authority | ReasonCode => {
  const parsed = parseHost(host.includes(":") && !host.startsWith("[") ? `[${host}]` : host)
  if (!parsed.ok) return parsed.code
  return Number.isInteger(port) && port > 0 && port < 65_536 ? authorityOf(parsed.value, port) : "bad_port"
}

/** What is only to be reported of a request that does more than read. */
const reportOf = (gate: Gate, sends: HostedRequest | undefined): ReasonCode | undefined => {
  if (sends === undefined || gate.policy.source.readOnlyHttp === "off") return undefined
  return isSafeMethod(sends.method) && !isOverridden(sends.headers, sends.path) ? undefined : "read_only"
}

/** @param source the far end */
export async function serveHosted(gate: Gate, source: ByteSource, near: Duplex, dial: HostedDial): Promise<Dialled> {
  const protocol = dial.sends === undefined ? "tcp" : "http"
  const refused = (code: ReasonCode, target?: Authority): Dialled => {
    source.destroy()
    return { ok: false, verdict: gate.refuse({ protocol, code, ...(target === undefined ? {} : { target }) }) }
  }
  const target = targetOf(dial)
  if (typeof target === "string") return refused(target)
  const report = reportOf(gate, dial.sends)
  if (report !== undefined && gate.policy.source.readOnlyHttp === "enforce") return refused(report, target)
  const stop = (): void => source.destroy()
  dial.signal?.addEventListener("abort", stop, { once: true })
  if (dial.signal?.aborted === true) stop()
  const opened = await gate.open({ protocol, target, client: source, report })
  dial.signal?.removeEventListener("abort", stop)
  if (!opened.ok) {
    source.destroy()
    return opened
  }
  const { upstream, passage, address } = opened
  relayTunnel({ client: source, upstream, passage, early: source.release(), memory: gate.memory, over: () => {} })
  const plain = gate.tape?.mode === "replay" ? ({ plain: true } as const) : {}
  return { ok: true, connection: near, address, ...(report === undefined ? {} : { report }), ...plain }
}
