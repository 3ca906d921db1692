/** Runs corpus cases against the pure core, and on the wire against a real proxy with loopback upstreams. */
import { connect, createServer, type Socket } from "node:net"
import { once } from "node:events"
import { authorityOf, parseName, type Authority } from "../../src/egress-proxy/policy/authority.ts"
import { parseIp } from "../../src/egress-proxy/policy/address.ts"
import { vetAnswer } from "../../src/egress-proxy/dial/connector.ts"
import { decide } from "../../src/egress-proxy/policy/decide.ts"
import { createHeadScanner } from "../../src/egress-proxy/http/head.ts"
import { judgeRequest } from "../../src/egress-proxy/http/judge.ts"
import { defaultLimits } from "../../src/egress-proxy/limits.ts"
import { policyFrom } from "../../src/egress-proxy/policy/options.ts"
import { compilePolicy, type CompiledPolicy } from "../../src/egress-proxy/policy/compile.ts"
import { createProxyWith, type EgressProxy } from "../../src/egress-proxy/proxy.ts"
import { type ReasonCode, reasons } from "../../src/egress-proxy/policy/reasons.ts"
import { everyRule, type RulesOff } from "../../src/egress-proxy/policy/rules.ts"
import { createSocks5Reader } from "../../src/egress-proxy/socks/socks5.ts"
import { createClientHelloReader } from "../../src/egress-proxy/tls/client-hello.ts"
import { judgeHello } from "../../src/egress-proxy/serve/tunnel.ts"
import type { Verdict } from "../../src/egress-proxy/types.ts"
import { corpusPolicy, type EgressCase, okResponse, publicAddress } from "./egress-cases.ts"

const ownNames = ["corpus-host"]
const bytesOf = (text: string) => Buffer.from(text, "latin1")

export function judgePure(one: EgressCase, off: RulesOff = everyRule): ReasonCode {
  const input = { ...corpusPolicy, readOnlyHttp: one.readOnly === true ? ("enforce" as const) : ("report" as const) }
  const policy = compilePolicy(policyFrom(input), { ownNames, off })
  const sent = bytesOf(one.send)
  return sent[0] === 5 || sent[0] === 4 ? judgeSocks(policy, one, sent) : judgeHttp(policy, one, sent)
}

function judgeSocks(policy: CompiledPolicy, one: EgressCase, sent: Buffer): ReasonCode {
  const step = createSocks5Reader().push(sent)
  if (step.state !== "request") return "bad_socks"
  const { target, port, command } = step
  const ip = target.kind === "name" ? undefined : parseIp(target.address)
  const host =
    target.kind === "name"
      ? parseName(target.bytes, policy.off)
      : ip === undefined
        ? undefined
        : { ok: true as const, value: { kind: "ip" as const, ip } }
  if (host === undefined) return "bad_socks"
  if (!host.ok) return host.code
  return command === "connect"
    ? judgeTarget(policy, one, authorityOf(host.value, port), bytesOf(one.inside ?? ""))
    : "command_not_allowed"
}

function judgeHttp(policy: CompiledPolicy, one: EgressCase, sent: Buffer): ReasonCode {
  const scan = createHeadScanner(defaultLimits.headBytes).push(sent)
  if (scan.state !== "head") return scan.state === "bad" ? scan.code : "bad_request_line"
  const judged = judgeRequest(policy, scan.head, defaultLimits.headerLines)
  if (judged.kind === "refused") return judged.code
  const inside = judged.kind === "tunnel" ? Buffer.concat([scan.rest, bytesOf(one.inside ?? "")]) : Buffer.alloc(0)
  return judgeTarget(policy, one, judged.authority, inside)
}

function judgeTarget(policy: CompiledPolicy, one: EgressCase, target: Authority, inside: Buffer): ReasonCode {
  const verdict = decide(policy, target)
  if (!verdict.allow) return verdict.code
  const answer = one.answer ?? [publicAddress]
  const addresses = answer === "fails" ? [] : answer.map(parseIp)
  if (addresses.length === 0 || !addresses.every((ip) => ip !== undefined)) return "dns_failure"
  const vetted = vetAnswer(policy, addresses, target.port)
  if (!vetted.ok) return vetted.code
  return inside.length === 0 || verdict.grant.protocol === "tcp" ? "allowed" : judgeInside(policy, target, inside)
}

function judgeInside(policy: CompiledPolicy, target: Authority, inside: Buffer): ReasonCode {
  const { off } = policy
  const flight = createClientHelloReader({ maxBytes: defaultLimits.helloBytes }).push(inside)
  if (flight.state === "hello") {
    const code = judgeHello(target, flight)
    return code === undefined || off.has(`tls.${code}`) ? "allowed" : code
  }
  if (flight.state !== "not-tls") return "bad_client_hello"
  if (target.port === 443 && !off.has("tunnel.tls-only")) return "protocol_mismatch"
  const scan = createHeadScanner(defaultLimits.headBytes).push(inside)
  if (scan.state !== "head") return "protocol_mismatch"
  const judged = judgeRequest(policy, scan.head, defaultLimits.headerLines, target)
  return judged.kind === "refused" ? judged.code : "allowed"
}

export interface WireResult {
  readonly verdicts: readonly Verdict[]
  readonly resolved: readonly string[]
  readonly dialled: readonly string[]
  readonly upstreamSaw: string
  readonly clientSaw: string
  readonly leftOver: number
}

function isWholeRequest(text: string): boolean {
  const end = text.indexOf("\r\n\r\n")
  if (end < 0 || !/^[A-Z]+ \S+ HTTP\/1\.1\r\n/.test(text)) return false
  const length = /\r\ncontent-length: ([0-9]+)/i.exec(text)?.[1]
  if (/\r\ntransfer-encoding: chunked/i.test(text)) return text.endsWith("0\r\n\r\n")
  return text.length - end - 4 >= Number(length ?? 0)
}

/** An upstream that keeps what it gets, and answers each whole request. */
async function startUpstream(answer: string) {
  let saw = ""
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    sockets.add(socket)
    socket.on("error", () => {})
    socket.on("close", () => sockets.delete(socket))
    let mine = ""
    let answered = false
    socket.on("data", (chunk) => {
      mine += chunk.toString("latin1")
      saw += chunk.toString("latin1")
      if (answered || !isWholeRequest(mine)) return
      answered = true
      socket.write(answer, "latin1")
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  const address = server.address()
  return {
    port: typeof address === "object" && address !== null ? address.port : 0,
    saw: () => saw,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
  }
}

export interface WireOptions {
  readonly off?: RulesOff
  /** bytes of a segment; default all at once */
  readonly segment?: number
  /** how long to wait for an outcome; default a second with a rule switched off, where none may ever come, else a minute */
  readonly patience?: number
  /** how a client reaches the proxy; default its own port on loopback */
  readonly dial?: (proxy: EgressProxy) => Promise<Socket>
}

/** Writes in segments that arrive as such: each goes out in a turn of its own. */
async function writeInSegments(socket: Socket, text: string, segment: number): Promise<void> {
  const bytes = bytesOf(text)
  for (let at = 0; at < bytes.length && !socket.destroyed; at += segment) {
    socket.write(bytes.subarray(at, at + segment))
    if (at + segment < bytes.length) await new Promise((resolve) => setImmediate(resolve))
  }
}

export async function runOnWire(
  one: EgressCase,
  {
    off = everyRule,
    segment = Number.POSITIVE_INFINITY,
    patience = off === everyRule ? 60_000 : 1_000,
    dial,
  }: WireOptions = {},
): Promise<WireResult> {
  await using upstream = await startUpstream(one.upstream ?? okResponse)
  const verdicts: Verdict[] = []
  const resolved: string[] = []
  const dialled: string[] = []
  await using proxy = await createProxyWith(
    {
      ...corpusPolicy,
      listen: "127.0.0.1:0",
      readOnlyHttp: one.readOnly === true ? "enforce" : "report",
      limits: { lingerMs: 50 },
      onVerdict: (verdict) => verdicts.push(verdict),
      resolve(name) {
        resolved.push(name)
        if (one.answer === "fails") throw new Error("SERVFAIL")
        return one.answer ?? [publicAddress]
      },
      dial(address, port) {
        dialled.push(`${address} ${port}`)
        return connect(upstream.port, "127.0.0.1")
      },
    },
    { off, ownNames },
  )
  const client =
    dial === undefined ? connect({ port: proxy.port ?? 0, host: "127.0.0.1", allowHalfOpen: true }) : await dial(proxy)
  let clientSaw = ""
  const closed = new Promise<void>((resolve) => client.on("close", () => resolve()))
  client.on("error", () => {})
  client.on("end", () => client.end())
  const standing = one.inside === undefined ? undefined : waitForTunnel(client, () => clientSaw)
  client.on("data", (chunk) => {
    clientSaw += chunk.toString("latin1")
  })
  client.setNoDelay(true)
  await writeInSegments(client, one.send.replaceAll("SELF", proxy.address ?? ""), segment)
  const stands =
    standing !== undefined &&
    (await Promise.race([
      standing,
      new Promise<false>((resolve) => setTimeout(() => resolve(false), patience).unref()),
    ]))
  if (stands) await writeInSegments(client, one.inside ?? "", segment)
  await settled(one, verdicts, closed, client, upstream.saw, patience)
  client.destroy()
  await closed
  await proxy.close()
  const { connections, passages, pending } = proxy.counters()
  return {
    verdicts,
    resolved,
    dialled,
    upstreamSaw: upstream.saw(),
    clientSaw,
    leftOver: connections + passages + pending,
  }
}

function waitForTunnel(client: Socket, saw: () => string): Promise<boolean> {
  return new Promise((resolve) => {
    const look = () => {
      const text = saw()
      if (/^HTTP\/1\.1 200 [^\n]*\n\r\n/.test(text) || text === "\x05\0\x05\0\0\x01\0\0\0\0\0\0") resolve(true)
      else if (text.startsWith("HTTP/1.1 ") || text.length > 11) resolve(false)
    }
    client.on("data", () => queueMicrotask(look))
    client.on("close", () => resolve(false))
  })
}

/** Refused: the client is closed by the proxy. Allowed: what was sent inside, or the response, has arrived. */
async function settled(
  one: EgressCase,
  verdicts: readonly Verdict[],
  closed: Promise<void>,
  client: Socket,
  upstreamSaw: () => string,
  patience: number,
): Promise<void> {
  const wanted = one.clientHas ?? []
  let text = ""
  const poll = new Promise<void>((resolve) => {
    const look = () => {
      const last = verdicts.at(-1)
      // A refusal that keeps the connection has been said in full; any other closes it.
      const refused =
        last !== undefined && last.decision !== "allow" && /x-caisson-denied[^]*\r\n\r\n\{.*\}\n$/.test(text)
      const arrived = wanted.every((part) => text.includes(part))
      const flowed =
        one.inside === undefined ? !one.send.includes("\x16\x03") || upstreamSaw() !== "" : upstreamSaw() !== ""
      const answered =
        one.reason !== "allowed" ||
        one.send.startsWith("CONNECT") ||
        one.send.charCodeAt(0) === 5 ||
        text.includes("\r\n\r\n")
      if (last !== undefined && arrived && (refused || (one.reason === "allowed" && flowed && answered))) resolve()
    }
    client.on("data", (chunk) => {
      text += chunk.toString("latin1")
      look()
    })
    const timer = setInterval(look, 2)
    void closed.then(() => {
      clearInterval(timer)
      resolve()
    })
    // A rule that is switched off can leave both sides waiting for each other; that is an outcome too.
    const limit = setTimeout(resolve, patience)
    void closed.then(() => clearTimeout(limit))
  })
  await poll
}

/** What of a wire run is not as the case says; empty when all is. */
export function faultsOnWire(one: EgressCase, seen: WireResult): readonly string[] {
  const faults: string[] = []
  const need = (holds: boolean, what: string) => {
    if (!holds) faults.push(what)
  }
  const first = seen.verdicts[0]
  const last = seen.verdicts.at(-1)
  need(
    last?.reason === one.reason && last.decision === reasons[one.reason].class,
    `the verdict is ${last?.decision} ${last?.reason}, not ${one.reason}`,
  )
  if (one.reason === "allowed")
    need(seen.dialled[0]?.startsWith(`${publicAddress} `) === true, `dialled ${seen.dialled[0]}`)
  for (const part of one.upstreamHas ?? [])
    need(seen.upstreamSaw.includes(part), `the upstream did not see ${JSON.stringify(part)}`)
  for (const part of one.upstreamLacks ?? [])
    need(!seen.upstreamSaw.includes(part), `the upstream saw ${JSON.stringify(part)}`)
  for (const part of one.clientHas ?? [])
    need(seen.clientSaw.includes(part), `the client did not see ${JSON.stringify(part)}`)
  for (const part of one.clientLacks ?? [])
    need(!seen.clientSaw.includes(part), `the client saw ${JSON.stringify(part)}`)
  const refusedAtOnce = first !== undefined && first.decision !== "allow"
  if (refusedAtOnce) need(seen.dialled.length === 0, "a refused request was dialled")
  if (refusedAtOnce && one.answer === undefined) need(seen.resolved.length === 0, "a refused name was resolved")
  // Where a tunnel stood and its first flight was refused, nothing of it went upstream.
  if (one.reason !== "allowed" && one.inside !== undefined) need(seen.upstreamSaw === "", "refused bytes went upstream")
  need(seen.leftOver === 0, "connections, passages or pending work were left over")
  return faults
}
