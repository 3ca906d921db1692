/** Calls recorded at the proxy, and replayed with the network closed: equal effects, and nothing of the secrets. */
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http"
import { createServer as createSecureServer } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { getCACertificates, setDefaultCACertificates } from "node:tls"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { createHost, writeSetDigest } from "../../src/host/index.ts"
import type { Envelope, Host } from "../../src/host/types.ts"

const roots = getCACertificates("default")
const secret = "s3cr3t-value-of-the-vault"
let folder: string
let host: Host
let served: { readonly method: string; readonly url: string }[] = []
const servers: Server[] = []

const answer = (request: IncomingMessage, response: ServerResponse): void => {
  served.push({ method: request.method ?? "", url: request.url ?? "" })
  const url = new URL(request.url ?? "/", "http://x")
  if (url.pathname === "/to") {
    response.writeHead(302, { location: `/secrets?token=${secret}-next`, "set-cookie": `sid=${secret}-cookie; Path=/` })
    return void response.end()
  }
  if (url.pathname === "/secrets") {
    response.writeHead(200, { "content-type": "application/json", "x-api-key": `${secret}-header` })
    const said = { access_token: `${secret}-given`, echo: request.headers.authorization, token: "^1.0.0", sum: 3 }
    return void response.end(JSON.stringify(said))
  }
  let body = ""
  request.on("data", (part: Buffer) => (body += part.toString()))
  request.on("end", () => {
    response.writeHead(200, { "content-type": "application/json" })
    response.end(JSON.stringify({ id: "x", summary: "x", path: url.pathname, count: served.length, body }))
  })
}

const opened = async (server: Server): Promise<number> => {
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}

/** A tool whose input is a script of the shell's, with these hosts. */
const writeTools = (): string => {
  const home = join(folder, "manifests")
  mkdirSync(join(home, "bin"), { recursive: true })
  writeFileSync(
    join(home, "bin", "go"),
    '#!/bin/bash\nif [ "$1" = --version ]; then echo go 1.0.0; exit; fi\neval "$2"\n',
  )
  chmodSync(join(home, "bin", "go"), 0o755)
  writeFileSync(
    join(home, "TOOL.md"),
    `---
name: Go
id: test.go
description: Runs a script.
version: 1.0.0
inputs: { type: object, additionalProperties: false, required: [script], properties: { script: { type: string } } }
outputs: { type: string }
mutates: ["workspace:/out", "workspace:/out/**"]
requires: { network: ["plain.test:80", "tls.test:443", "tcp://raw.test:9999"] }
approval: on-mutate
risk_level: 1
timeout_ms: 60000
---
`,
  )
  writeFileSync(
    join(home, "DRIVER.md"),
    `---
name: Go
id: go
description: Runs a script.
version: 1.0.0
kind: cli
bin: go
install: [{ method: vendored, path: bin/go }]
version_check: { cmd: go --version, parse: 'go (\\d+\\.\\d+\\.\\d+)', range: ^1.0.0 }
sandbox:
  network: { egress: ["plain.test:80", "tls.test:443", "tcp://raw.test:9999"], ingress: [] }
  fs: { read: ["**"], write: ["out", "out/**"], deny: [] }
  exec: { allow: true, spawn: [curl, git, mkdir, cat] }
  env: { pass: [], set: { LC_ALL: C.UTF-8 } }
output: { default_format: text, stream: stdout, error_stream: stderr }
implements:
  - tool: ./TOOL.md
    version: ^1.0.0
    metadata: { cli: { argv: [--, "\${input.script}"], output_format: text } }
---
`,
  )
  return home
}

const go = async (script: string, tape: { record?: string; replay?: string } = {}): Promise<Envelope> => {
  const workspace = mkdtempSync(join(folder, "work-"))
  return host.call({ tool: "test.go", input: { script }, workspace }, { approved: true, ...tape })
}
const tape = (name: string): string => join(folder, `${name}.jsonl`)
const said = (envelope: Envelope): unknown => (envelope.ok ? envelope.value : envelope.error)

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "caisson-replay-"))
  const authority = createCallAuthority({ names: ["tls.test", "api.osv.dev"] })
  setDefaultCACertificates([...roots, authority.caPem])
  const plain = await opened(createServer(answer))
  const secure = await opened(createSecureServer(authority.leafFor("tls.test"), answer))
  const osv = await opened(createSecureServer(authority.leafFor("api.osv.dev"), answer))
  const config = join(folder, "caisson.yaml")
  const services = { "plain.test": plain, "tls.test": secure, "api.osv.dev": osv, "raw.test": plain }
  const lines = Object.entries(services).map(([name, port]) => `    ${name}: 127.0.0.1:${port}\n`)
  writeFileSync(config, `egress:\n  services:\n${lines.join("")}`)
  host = await createHost({ data: join(folder, "data"), config, manifests: [writeTools()] })
}, 120_000)
afterAll(async () => {
  await host?.close()
  for (const each of servers) {
    each.closeAllConnections()
    await new Promise((resolve) => each.close(resolve))
  }
  setDefaultCACertificates(roots)
  rmSync(folder, { recursive: true, force: true })
})

describe("record and replay", () => {
  test("a program's requests, in the clear and over TLS, are answered again with equal effects, and nobody is asked", async () => {
    const script =
      "mkdir out; curl -sSf http://plain.test/a -o out/a; curl -sSf https://tls.test/b -d x=1 -o out/b; curl -sSf https://tls.test/b -d x=2 -o out/c; cat out/a"
    const first = await go(script, { record: tape("both") })
    expect(said(first)).toContain('"path":"/a"')
    expect(statSync(tape("both")).mode & 0o777).toBe(0o600)
    expect(first).toMatchObject({ ok: true, notes: expect.arrayContaining([expect.stringMatching(/^recorded: 3 ex/)]) })
    served = []
    for (let times = 0; times < 2; times += 1) {
      const again = await go(script, { replay: tape("both") })
      expect(said(again)).toEqual(said(first))
      expect(again.effects).toEqual(first.effects)
      expect(writeSetDigest(again.effects)).toBe(writeSetDigest(first.effects))
      expect(again).toMatchObject({ notes: expect.arrayContaining([expect.stringMatching(/^replayed: 3 of 3/)]) })
    }
    expect(served).toEqual([])
    const told = await host.receipts({ limit: 1 })
    expect(told.ok && told.receipts[0]?.metadata).toMatchObject({ tape: { mode: "replay", exchanges: 3, used: 3 } })
  })

  test("a miss fails the call by name, whatever the program makes of it, and nothing is kept", async () => {
    await go("curl -sS http://plain.test/known?page=1", { record: tape("miss") })
    const missed = await go("mkdir out; curl -s http://plain.test/known?page=2 > out/x; true", { replay: tape("miss") })
    expect(missed).toMatchObject({
      ok: false,
      error: {
        code: "upstream_error",
        message: expect.stringContaining(
          "GET http://plain.test:80/known?page=2 is not in the recording; nearest is GET http://plain.test:80/known?page=1",
        ),
      },
    })
    expect(missed.effects.every(({ committed }) => !committed)).toBe(true)
  })

  test("another host is stopped by the egress rules, and raw TCP by name", async () => {
    await go("curl -sS http://plain.test/one", { record: tape("rules") })
    const other = await go("curl -sS http://elsewhere.test/ || true", { replay: tape("rules") })
    expect(other.denied.map(({ target }) => target)).toEqual(["elsewhere.test:80"])
    for (const mode of ["record", "replay"] as const) {
      const raw = await go("curl -sS telnet://raw.test:9999 </dev/null || true", { [mode]: tape("rules") })
      expect(said(raw)).toMatchObject({ message: expect.stringContaining("raw.test:9999: tcp:// can neither be") })
    }
  })

  test("a program that does not take the call's authority fails by name", async () => {
    const envelope = await go(
      "unset CURL_CA_BUNDLE SSL_CERT_FILE; curl -sS --capath /nowhere --cacert /etc/hostname https://tls.test/ || true",
      {
        record: tape("pinned"),
      },
    )
    expect(said(envelope)).toMatchObject({ message: expect.stringMatching(/tls\.test/) })
  })

  test("nothing of secrets is written down: headers, cookies, queries, redirects, bodies, nor where they are echoed", async () => {
    const script = `curl -sS -L -b jar=${secret}-jar -H 'Authorization: Bearer ${secret}-bearer' 'http://plain.test/to?api_key=${secret}-query'`
    const first = await go(script, { record: tape("secrets") })
    expect(said(first)).toContain(`${secret}-bearer`)
    const text = readFileSync(tape("secrets"), "utf8")
    expect(text).not.toContain(secret)
    expect(text).not.toContain(Buffer.from(secret).toString("base64").slice(2, 20))
    expect(text).toContain("^1.0.0")
    const again = await go(script, { replay: tape("secrets") })
    expect(said(again)).toContain('"sum":3')
    expect(said(again)).not.toContain(secret)
  })

  test("what is no recording ends the call before anything runs", async () => {
    writeFileSync(tape("none"), "[]\n")
    const envelope = await go("mkdir out", { replay: tape("none") })
    expect(envelope).toMatchObject({ ok: false, error: { code: "input_invalid" }, effects: [] })
    expect(said(await go("true", { replay: tape("nowhere") }))).toMatchObject({ code: "input_invalid" })
  })

  test("a service behind an http driver is recorded and replayed too", async () => {
    const input = { id: "GHSA-jfh8-c2jp-5v3q" }
    const call = (more: object): Promise<Envelope> =>
      host.call({ tool: "vulnerability.show", input, workspace: mkdtempSync(join(folder, "work-")) }, more)
    const first = await call({ record: tape("osv") })
    expect(said(first)).toMatchObject({ path: `/v1/vulns/${input.id}` })
    served = []
    expect(said(await call({ replay: tape("osv") }))).toEqual(said(first))
    expect(served).toEqual([])
  })
})
