/**
 * The requests of one HTTP connection, one after the other, each judged from scratch.
 *
 * Guarantees: a request is read, judged, answered or forwarded, and only then is the next one looked at; what was
 * allowed once gives the next request nothing but a connection that is open already. A refusal of the grammar closes the connection; a refusal of policy
 * keeps it only when there is no body to skip. Ends when the client does.
 * The forwarder and what it needs of Node are loaded with the first request that is forwarded: most calls make none.
 */
import type { Authority } from "../policy/authority.ts"
import type { ByteSource } from "../connection/byte-source.ts"
import { denialResponse } from "../policy/denial.ts"
import type { Gate, Opened } from "../dial/gate.ts"
import { linger } from "./linger.ts"
import type { Protocol, Verdict } from "../types.ts"
import type { forward as Forward } from "../http/forward.ts"
import { passedHeaders } from "../http/framing.ts"
import { type Header, type RequestHead, valuesOf } from "../http/head.ts"
import { isSafe, type Judged, judgeRequest } from "../http/judge.ts"
import { createKeptUpstreams, type KeptUpstreams } from "../http/kept.ts"
import { isSafeMethod } from "../http/method.ts"
import { readHead } from "../http/read-head.ts"
import { hostHeader } from "../http/target.ts"

type Open = Extract<Opened, { ok: true }>

/** Inside a tunnel: every request is for this authority; the first one uses the socket already open. */
interface Inside {
  readonly authority: Authority
  readonly protocol: Protocol
  readonly opened: Open
}

interface SessionOptions {
  readonly gate: Gate
  readonly source: ByteSource
  readonly inside?: Inside
  readonly onConnect: (authority: Authority) => Promise<void>
}

type Step = "next" | "over"

export async function serveHttp(options: SessionOptions): Promise<void> {
  const { gate, source, inside } = options
  const kept = createKeptUpstreams(gate.limits.keptUpstreams, gate.limits.keptMs)
  let spare = inside?.opened
  const drop = (opened: Open | undefined) => {
    opened?.passage.finish()
    opened?.upstream.destroy()
  }
  try {
    for (let step: Step = "next"; step === "next"; ) {
      const read = await readHead(source, gate.limits)
      if (read.state === "gone") return
      const opened = spare
      spare = undefined
      if (read.state === "bad") {
        drop(opened)
        const code = inside !== undefined && read.code === "bad_request_line" ? "protocol_mismatch" : read.code
        return void (await refuseAndClose(
          options,
          gate.refuse({
            protocol: inside?.protocol ?? "http",
            code,
            ...(inside !== undefined && { target: inside.authority }),
          }),
        ))
      }
      await gate.turns.next(Math.max(read.head.length, gate.limits.requestCost))
      const judged = judgeRequest(gate.policy, read.head, gate.limits.headerLines, inside?.authority)
      if (judged.kind === "tunnel") {
        gate.tunnels.learn(read.head, judged.authority)
        return await options.onConnect(judged.authority)
      }
      if (judged.kind === "refused") drop(opened)
      step =
        judged.kind === "refused" ? await answerJudged(options, judged) : await exchange(options, judged, opened, kept)
    }
  } finally {
    drop(spare)
    kept.close()
    if (!source.destroyed) await linger(source, Buffer.alloc(0), gate)
  }
}

let forwarding: Promise<{ readonly forward: typeof Forward }> | undefined

async function exchange(
  options: SessionOptions,
  judged: Extract<Judged, { kind: "exchange" }>,
  opened: Open | undefined,
  kept: KeptUpstreams,
): Promise<Step> {
  const { gate, source } = options
  const { authority, head, framing } = judged
  const { off, source: policy, substitutions } = gate.policy
  const protocol: Protocol = framing.websocket ? "websocket" : "http"
  const { tape } = gate
  if (tape !== undefined && framing.websocket) {
    tape.fault(`${authority.text}: a WebSocket can neither be recorded nor replayed`)
    opened?.passage.finish()
    opened?.upstream.destroy()
    return refuseAndClose(options, gate.refuse({ protocol, target: authority, code: "not_recordable" }), head)
  }
  const report = policy.readOnlyHttp === "report" && !isSafe(head, framing, judged.path, off) ? "read_only" : undefined
  const request = { protocol, target: authority, client: source, report } as const
  const waiting = opened === undefined && !framing.websocket ? kept.take(authority, gate.generation) : undefined
  const through = opened ?? (waiting === undefined ? await gate.open(request) : gate.again(request, waiting))
  if (!through.ok) {
    waiting?.upstream.destroy()
    return refuseAndClose(options, through.verdict, head)
  }
  // The tunnel's own allow was recorded before this request was seen.
  if (opened !== undefined && report !== undefined) {
    const { address, grant } = opened
    gate.record({ protocol, target: authority, code: "allowed", address, rule: grant.rule, report })
  }
  const { placeholders } = substitutions
  using scanner = placeholders.length === 0 ? undefined : await scannerFor(gate, head)
  const { forward } = await (forwarding ??= import("../http/forward.ts"))
  const { generation } = gate
  const words = {
    source,
    head,
    framing,
    path: judged.path,
    host: hostHeader(authority, 80),
    headers: tape === undefined ? passedHeaders(head.headers, off) : asItIs(passedHeaders(head.headers, off)),
    tape:
      tape === undefined
        ? undefined
        : { tape, target: { host: authority.hostText, port: authority.port, secure: false } },
    limits: gate.limits,
    turns: gate.turns,
    idleMs: policy.budgets.idleTimeoutMs,
    off,
    keep: framing.keepAlive && !framing.websocket,
    ...(scanner !== undefined && { scanner }),
  }
  let carried: Open = through
  let result = await forward({ ...words, upstream: carried.upstream, passage: carried.passage })
  const again = result.state === "failed" && result.unanswered === true && waiting !== undefined
  if (again && framing.body.kind === "none" && isSafeMethod(head.method) && !source.destroyed) {
    // The connection died while it was kept. Only what can be sent twice is.
    const fresh = await gate.open({ ...request, quiet: true })
    if (!fresh.ok) return await refuseAndClose(options, fresh.verdict, head)
    carried = fresh
    result = await forward({ ...words, upstream: carried.upstream, passage: carried.passage })
  }
  if (result.state === "answered" && result.kept === true) {
    if (generation === gate.generation)
      kept.keep(authority, { upstream: carried.upstream, address: carried.address, generation })
    else carried.upstream.destroy()
  }
  if (result.state === "answered") return result.reusable ? "next" : "over"
  if ((result.state !== "failed" && result.state !== "refused") || source.destroyed) return "over"
  const { rule } = through.grant
  const verdict =
    result.state === "refused" ? result.verdict : gate.refuse({ protocol, target: authority, code: result.code, rule })
  return await refuseAndClose(options, verdict, head)
}

/** What is kept is searched for secrets, so it is asked for as it is. */
const asItIs = (headers: readonly Header[]): readonly Header[] => [
  ...headers.filter(([name]) => name.toLowerCase() !== "accept-encoding"),
  ["Accept-Encoding", "identity"],
]

async function scannerFor({ policy, turns, decoding: room }: Gate, head: RequestHead) {
  const { createBodyScanner } = await import("../secrets/body.ts")
  const { placeholders } = policy.substitutions
  return createBodyScanner({ placeholders, encoding: valuesOf(head, "content-encoding").join(","), turns, room })
}

function answerJudged(options: SessionOptions, judged: Extract<Judged, { kind: "refused" }>): Promise<Step> {
  const { code, authority, head, framing } = judged
  const protocol = head?.method === "CONNECT" ? "connect" : framing?.websocket === true ? "websocket" : "http"
  const verdict = options.gate.refuse({ protocol, code, ...(authority !== undefined && { target: authority }) })
  return refuseAndClose(options, verdict, head)
}

async function refuseAndClose({ source, gate }: SessionOptions, verdict: Verdict, head?: RequestHead): Promise<Step> {
  await linger(source, denialResponse(verdict, { keepAlive: false, headOnly: head?.method === "HEAD" }), gate)
  return "over"
}
