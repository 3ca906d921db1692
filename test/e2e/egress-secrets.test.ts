/**
 * A secret that never enters the sandbox: the program inside holds a placeholder, the upstream gets the value, and
 * a placeholder that is sent anywhere else goes nowhere.
 */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { createEgressProxy, type EgressProxy } from "../../src/egress-proxy/index.ts"
import { bundleWith, trustEnvironment } from "../../src/egress-proxy/tls/trust.ts"
import type { Verdict } from "../../src/egress-proxy/types.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { type Occupant, occupy, proxyPort, type Ran } from "../support/occupant.ts"
import { descendants, removeFolder, stillAlive, temporaryFolder, until } from "../support/sealed.ts"
import { programAt } from "../support/servers/packages.ts"
import { startWeb, type WebServer } from "../support/servers/web.ts"

const placeholder = "$$SECRET[API_TOKEN]$$"
const value = "tok_live-5b1f0c2e9d"
const bundle = "/run/caisson/ca.pem"
const proxyUrl = `http://127.0.0.1:${proxyPort}`
const everyProgram = ["python3", "sh", "env", "cat", "grep", "curl", "git", "node"]

const data = temporaryFolder("data")
const backend = createNamespaceBackend({ data })
let web: WebServer
let proxy: EgressProxy
let occupant: Occupant
let verdicts: Verdict[]
let seenBefore = 0

beforeAll(async () => {
  web = await startWeb()
})
afterAll(async () => {
  const ours = descendants(process.pid)
  await web?.[Symbol.asyncDispose]()
  await backend[Symbol.asyncDispose]()
  await until(() => stillAlive(ours).length === 0, "every process is gone")
  removeFolder(data)
})
beforeEach(async () => {
  verdicts = []
  seenBefore = web.seen.length
  proxy = await createEgressProxy({
    egress: ["api.test:443", "other.test:443", "plain.test:80", "tcp://raw.test:5432"],
    services: {
      "api.test": `127.0.0.1:${web.httpsPort}`,
      "other.test": `127.0.0.1:${web.httpsPort}`,
      "plain.test": `127.0.0.1:${web.httpPort}`,
      "raw.test": `127.0.0.1:${web.httpPort}`,
    },
    substitutions: [{ placeholder, value, hosts: ["api.test"] }],
    upstreamCa: [web.caPem],
    onVerdict: (verdict) => verdicts.push(verdict),
  })
  // Hosts without a secret keep their own certificates, so the sandbox trusts both authorities, and nobody else.
  occupant = await occupy(backend, {
    spawn: Object.fromEntries(
      everyProgram.flatMap((name) => (programAt(name) === undefined ? [] : [[name, programAt(name) as string]])),
    ),
    files: { [bundle]: Buffer.from(bundleWith(web.caPem, proxy.caPem ?? "")) },
    env: {
      PATH: "/usr/bin:/bin",
      HOME: "/home/tool",
      LANG: "C.UTF-8",
      API_TOKEN: placeholder,
      ...trustEnvironment(bundle),
    },
  })
  proxy.serve(occupant.channel)
})
afterEach(async () => {
  await occupant[Symbol.asyncDispose]()
  await proxy.close()
})

const curl = (...args: readonly string[]): Promise<Ran> => occupant.run(["/usr/bin/curl", "-sS", "-m", "20", ...args])
const bearer = (token = placeholder): readonly string[] => ["-H", `Authorization: Bearer ${token}`]
const upstreamSaw = () => web.seen.slice(seenBefore)

describe("a placeholder in a header of the host that the secret is bound to", () => {
  for (const [how, more] of [
    ["through the proxy", ["-x", proxyUrl]],
    ["by name alone", ["--noproxy", "*"]],
  ] as const) {
    it(`becomes the value outside (${how}), and the sandbox sees neither the value nor another authority's key`, async () => {
      const ran = await curl(...more, ...bearer(), "https://api.test/me", "-D", "-", "-v")
      expect(ran, ran.stderr).toMatchObject({ code: 0, stdout: expect.stringContaining("served /me") })
      expect(upstreamSaw()).toMatchObject([
        { method: "GET", host: "api.test", url: "/me", authorization: `Bearer ${value}` },
      ])
      expect(`${ran.stdout}${ran.stderr}`).not.toContain(value)
      const around = await occupant.run([
        "/usr/bin/python3",
        "-c",
        `
import os
found = [k for k, v in os.environ.items() if ${JSON.stringify(value.slice(0, 8))} in v]
for root, folders, files in os.walk("/"):
    if root == "/": folders[:] = [f for f in folders if f in ("run", "etc", "tmp", "home", "workspace", "opt")]
    for file in files:
        try: text = open(os.path.join(root, file), "rb").read(1 << 20)
        except OSError: continue
        if ${JSON.stringify(value)}.encode() in text: found.append(file)
        if root.startswith("/run") and b"PRIVATE KEY" in text: found.append("key " + file)
print(found)`,
      ])
      expect(around).toMatchObject({ code: 0, stdout: "[]\n" })
      expect(JSON.stringify(verdicts)).not.toContain(value)
    })
  }

  it("becomes the value for programs of other kinds too", async () => {
    const python = await occupant.run([
      "/usr/bin/python3",
      "-c",
      `
import os, urllib.request
request = urllib.request.Request("https://api.test/py", headers={"Authorization": "Bearer " + os.environ["API_TOKEN"]})
print(urllib.request.urlopen(request, timeout=20).status)`,
    ])
    expect(python, python.stderr).toMatchObject({ code: 0, stdout: "200\n" })
    if (programAt("node") !== undefined) {
      const node = await occupant.run([
        "/usr/bin/node",
        "-e",
        "fetch('https://api.test/js', { headers: { authorization: 'Bearer ' + process.env.API_TOKEN } }).then((r) => console.log(r.status))",
      ])
      expect(node, node.stderr).toMatchObject({ code: 0, stdout: "200\n" })
    }
    for (const request of upstreamSaw()) expect(request.authorization).toBe(`Bearer ${value}`)
    expect(upstreamSaw().length).toBeGreaterThan(0)
  })
})

describe("a placeholder anywhere else is misuse and is not forwarded", () => {
  const misuses: readonly (readonly [string, readonly string[]])[] = [
    ["in a header to another declared host, in the clear", [...bearer(), "http://plain.test/x"]],
    ["in the body", ["--data-binary", `token=${placeholder}`, "https://api.test/form"]],
    ["in the body, encoded as a form", ["--data-urlencode", `token=${placeholder}`, "https://api.test/form"]],
    [
      "in a chunked body",
      [
        "-H",
        "Transfer-Encoding: chunked",
        "--data-binary",
        `${"x".repeat(100_000)}${placeholder}`,
        "https://api.test/form",
      ],
    ],
    ["in the query", ["-g", `https://api.test/q?token=${placeholder}`]],
    ["in the query, percent-encoded", ["-g", `https://api.test/q?token=${encodeURIComponent(placeholder)}`]],
    ["in the path", ["-g", `https://api.test/${placeholder}/x`]],
    ["in a header, under another Host", [...bearer(), "-H", "Host: other.test", "https://api.test/x"]],
  ]
  for (const [where, args] of misuses) {
    it(where, async () => {
      const ran = await curl("-x", proxyUrl, ...args)
      expect(upstreamSaw()).toEqual([])
      expect(verdicts.at(-1)).toMatchObject({
        decision: "deny",
        reason: where.includes("another Host") ? "authority_mismatch" : "secret_misuse",
      })
      expect(`${ran.stdout}${ran.stderr}`).not.toContain(value)
    })
  }

  it("in raw bytes to a tcp:// entry", async () => {
    const socket = await occupant.dial("raw.test", 5432)
    socket.write(`GET /?${placeholder} HTTP/1.1\r\nHost: raw.test\r\n\r\n`)
    await new Promise((resolve) =>
      socket
        .on("end", () => socket.end())
        .on("close", resolve)
        .resume(),
    )
    expect(upstreamSaw()).toEqual([])
    expect(verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "secret_misuse", host: "raw.test" })
  })

  it("is never substituted inside TLS that is not ended here", async () => {
    const ran = await curl("-x", proxyUrl, ...bearer(), "https://other.test/x")
    expect(ran, ran.stderr).toMatchObject({ code: 0 })
    expect(upstreamSaw()).toMatchObject([{ host: "other.test", authorization: `Bearer ${placeholder}` }])
  })
})

it("an upstream with a certificate that nobody vouches for gets nothing", async () => {
  await proxy.close()
  proxy = await createEgressProxy({
    egress: ["api.test:443"],
    services: { "api.test": `127.0.0.1:${web.httpsPort}` },
    substitutions: [{ placeholder, value, hosts: ["api.test"] }],
    onVerdict: (verdict) => verdicts.push(verdict),
  })
  proxy.serve(occupant.channel)
  const ran = await curl("-x", proxyUrl, "-k", ...bearer(), "https://api.test/me")
  expect(ran.stdout).not.toContain("served")
  expect(upstreamSaw()).toEqual([])
  expect(verdicts.at(-1)).toMatchObject({ reason: "upstream_tls" })
})
