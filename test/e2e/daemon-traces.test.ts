/** Traces of calls, as a collector that listens gets them. */
import { createServer, type IncomingHttpHeaders } from "node:http"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { openDaemonWorld } from "./daemon-world.ts"
import { openFolder } from "./host-world.ts"
import { removeFolder } from "../support/remove-folder.ts"

interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly name: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly attributes: readonly { key: string; value: { stringValue?: string; intValue?: string } }[]
  readonly status?: { code: number; message: string }
}
interface Got {
  readonly path: string
  readonly headers: IncomingHttpHeaders
  readonly text: string
}

/** Answers with `status`, and keeps what it was sent. */
const openCollector = async (status: () => number) => {
  const got: Got[] = []
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on("data", (piece: Buffer) => pieces.push(piece))
    request.on("end", () => {
      got.push({ path: request.url ?? "", headers: request.headers, text: Buffer.concat(pieces).toString("utf8") })
      response.writeHead(status(), { location: "http://127.0.0.1:1/" }).end("{}")
    })
  })
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    got,
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans: (): readonly Span[] =>
      got.flatMap(({ text }) =>
        (JSON.parse(text) as { resourceSpans: { scopeSpans: { spans: Span[] }[] }[] }).resourceSpans.flatMap(
          ({ scopeSpans }) => scopeSpans.flatMap(({ spans }) => spans),
        ),
      ),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
    },
  }
}

describe("traces", () => {
  it("tell of each call and its steps, within the caller's own trace, and nothing of what it was about", async () => {
    await using collector = await openCollector(() => 200)
    const folder = openFolder()
    const headers = join(folder, "headers")
    writeFileSync(headers, "Authorization: Bearer of-the-collector\n", { mode: 0o600 })
    const world = await openDaemonWorld(
      `serve: { traces: { endpoint: "${collector.endpoint}", headers_file: ${headers} } }`,
    )
    const call = (verb: string, args: readonly string[], more = {}) =>
      world.local(
        "POST",
        "/v1/calls",
        { tool: "fixture.act", input: { verb, args }, workspace: world.workspace },
        { "caisson-approved": "yes", ...more },
      )
    const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
    try {
      const made = await call("write", ["notes/told-to-nobody.txt", "nor this"], {
        traceparent: `00-${trace}-00f067aa0ba902b7-01`,
        "idempotency-key": "traced-once",
      })
      expect(made).toMatchObject({ status: 200, body: { ok: true } })
      // What its key stood for is no further call; who does not sample is not traced.
      await call("write", ["notes/told-to-nobody.txt", "nor this"], { "idempotency-key": "traced-once" })
      await call("print", ["1"], { traceparent: `00-${"a".repeat(32)}-00f067aa0ba902b7-00` })
      await call("fail", [], { traceparent: "00-nonsense" })
      // What is left is sent when the daemon ends.
      await world.daemon.close()
      const { got } = collector
      expect(
        got.every(({ path, headers: sent }) => path === "/v1/traces" && sent["content-type"] === "application/json"),
      ).toBe(true)
      expect(got[0]?.headers.authorization).toBe("Bearer of-the-collector")
      const spans = collector.spans()
      const root = spans.find(({ traceId, parentSpanId }) => traceId === trace && parentSpanId === "00f067aa0ba902b7")
      expect(root).toMatchObject({ name: "caisson.call fixture.act@1", kind: 2 })
      const said = Object.fromEntries((root?.attributes ?? []).map(({ key, value }) => [key, value]))
      expect(said).toMatchObject({
        "caisson.call": { stringValue: made.body["call"] },
        "caisson.driver": { stringValue: "actor@1" },
        "caisson.code": { stringValue: "ok" },
        "caisson.receipt": { stringValue: made.body["receipt"] },
        "caisson.committed": { boolValue: true },
      })
      const steps = spans.filter(({ parentSpanId }) => parentSpanId === root?.spanId)
      expect(steps.map(({ name }) => name)).toEqual([
        "admit",
        "authorize and route",
        "sign in and seal",
        "start",
        "run",
        "settle",
      ])
      for (const { startTimeUnixNano: from, endTimeUnixNano: to, traceId } of steps) {
        expect(traceId).toBe(trace)
        expect(BigInt(from) >= BigInt(root?.startTimeUnixNano ?? 0)).toBe(true)
        expect(BigInt(to) >= BigInt(from) && BigInt(to) <= BigInt(root?.endTimeUnixNano ?? 0)).toBe(true)
      }
      const roots = spans.filter(({ name }) => name.startsWith("caisson.call"))
      expect(roots).toHaveLength(2)
      expect(roots.find(({ traceId }) => traceId !== trace)).toMatchObject({ status: { code: 2 } })
      expect(JSON.stringify(got)).not.toContain("told-to-nobody")
      expect(JSON.stringify(got)).not.toContain(world.workspace)
    } finally {
      await world[Symbol.asyncDispose]()
      removeFolder(folder)
    }
  })

  it("that nobody takes are dropped and counted, no redirect is followed, and calls go on", async () => {
    for (const status of [400, 307, 503]) {
      await using collector = await openCollector(() => status)
      await using world = await openDaemonWorld(`serve: { traces: { endpoint: "${collector.endpoint}" } }`)
      const made = await world.local("POST", "/v1/calls", {
        tool: "fixture.act",
        input: { verb: "print", args: ["1"] },
        workspace: world.workspace,
      })
      expect(made).toMatchObject({ status: 200 })
      const dropped = async (): Promise<number> => {
        const told = await fetch(`${world.address}/metrics`, { headers: await operator(world) })
        return Number(/^caisson_trace_spans_dropped_total (\d+)/m.exec(await told.text())?.[1] ?? 0)
      }
      await expect.poll(dropped, { timeout: 60_000, interval: 1_000 }).toBe(7)
    }
  }, 120_000)

  it("go to no address in the clear beyond this machine, and into no config with a password", async () => {
    for (const endpoint of [
      "http://otlp.example.com",
      "http://user:pass@127.0.0.1:4318",
      "https://x.test/?a=b",
      "ftp://x",
    ])
      await expect(openDaemonWorld(`serve: { traces: { endpoint: "${endpoint}" } }`)).rejects.toThrow("traces")
  })
})

const operator = async (world: Awaited<ReturnType<typeof openDaemonWorld>>) => {
  const made = await world.daemon.host.tokens.issue({ agent: false, workspaces: "any", roles: ["operator"] })
  if (!made.ok) throw new Error(made.error.message)
  return { authorization: `Bearer ${made.value.token}` }
}
