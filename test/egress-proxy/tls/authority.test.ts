import { execFile } from "node:child_process"
import { X509Certificate } from "node:crypto"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { createServer } from "node:https"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { connect, rootCertificates } from "node:tls"
import { promisify } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { createCallAuthority } from "../../../src/egress-proxy/tls/authority.ts"
import { pem } from "../../../src/egress-proxy/tls/der.ts"
import { bundleWith, trustEnvironment } from "../../../src/egress-proxy/tls/trust.ts"

const run = promisify(execFile)
const longName = `${"a".repeat(60)}.${"b".repeat(60)}.good.test`
let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-authority-"))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

async function verify(caPem: string, cert: string, hostname: string): Promise<string> {
  const [ca, leaf] = [join(folder, "ca.pem"), join(folder, "leaf.pem")]
  await writeFile(ca, caPem)
  await writeFile(leaf, cert)
  const flags = ["-x509_strict", "-purpose", "sslserver", "-verify_hostname", hostname, "-CAfile", ca, leaf]
  return run("openssl", ["verify", ...flags]).then(
    ({ stdout }) => stdout,
    (error: { stderr: string; stdout: string }) => `refused ${error.stdout}${error.stderr}`,
  )
}

describe("a call's authority", () => {
  it.each([undefined, ["api.good.test", "_x.good.test", longName]])(
    "makes leaves that OpenSSL takes in strict mode (names: %j)",
    async (names) => {
      using authority = createCallAuthority(names === undefined ? {} : { names })
      for (const name of ["api.good.test", "_x.good.test", longName]) {
        expect(await verify(authority.caPem, authority.leafFor(name).cert, name)).toMatch(/leaf\.pem: OK/)
      }
    },
  )

  it("is constrained to its names, so that OpenSSL refuses a leaf for another", async () => {
    using narrow = createCallAuthority({ names: ["api.good.test"] })
    expect(() => narrow.leafFor("evil.test")).toThrow("may not speak")
    const ca = new X509Certificate(narrow.caPem)
    expect(ca.ca).toBe(true)
    const { stdout } = await run("openssl", ["x509", "-noout", "-text", "-in", await saved(narrow.caPem)])
    expect(stdout).toMatch(/Name Constraints: critical\s+Permitted:\s+DNS:api\.good\.test/)
    expect(stdout).toMatch(/CA:TRUE, pathlen:0/)
  })

  it("makes leaves for the one name only", async () => {
    using authority = createCallAuthority()
    const leaf = new X509Certificate(authority.leafFor("api.good.test").cert)
    expect([leaf.checkHost("api.good.test"), leaf.checkHost("x.api.good.test"), leaf.ca]).toEqual([
      "api.good.test",
      undefined,
      false,
    ])
    expect(await verify(authority.caPem, authority.leafFor("api.good.test").cert, "evil.test")).toMatch(/^refused/)
    using other = createCallAuthority()
    expect(await verify(other.caPem, authority.leafFor("api.good.test").cert, "api.good.test")).toMatch(/^refused/)
  })

  it("caches a leaf, gives each its own serial number, and makes none once disposed", () => {
    const authority = createCallAuthority()
    const leaf = authority.leafFor("a.test")
    expect(authority.leafFor("a.test")).toBe(leaf)
    const serials = ["a.test", "b.test"].map((name) => new X509Certificate(authority.leafFor(name).cert).serialNumber)
    expect(new Set(serials).size).toBe(2)
    authority.dispose()
    expect(() => authority.leafFor("a.test")).toThrow("gone")
  })

  it.each(["", "A.test", "a.test.", "a..test", "a test", "a\0b", "*.test", "é.test"])(
    "makes no leaf for %j",
    (name) => {
      using authority = createCallAuthority()
      expect(() => authority.leafFor(name)).toThrow(TypeError)
    },
  )

  it("writes PEM without a blank line at any length", () => {
    for (let size = 1; size < 200; size += 1) {
      const text = pem("X", Buffer.alloc(size, 1))
      expect(text).not.toMatch(/\n\n/)
      expect(text.split("\n").every((line) => line.length <= 64)).toBe(true)
    }
  })

  it("is trusted by node:tls, curl and Python in strict mode through the bundle", async () => {
    using authority = createCallAuthority({ names: ["localhost"] })
    const { cert, key } = authority.leafFor("localhost")
    const server = createServer({ cert, key }, (_, response) => response.end("hello"))
    server.listen(0, "127.0.0.1")
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    try {
      const bundle = await saved(bundleWith(rootCertificates.slice(0, 3).join("\n"), authority.caPem))
      const env = { PATH: process.env["PATH"] ?? "", ...trustEnvironment(bundle) }
      const url = `https://localhost:${port}/`
      const curl = await run("curl", ["-sS", "-4", url], { env })
      expect(curl.stdout).toBe("hello")
      const script = [
        "import ssl, urllib.request, sys",
        "context = ssl.create_default_context()",
        "context.verify_flags |= ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN",
        "print(urllib.request.urlopen(sys.argv[1], context=context).read().decode())",
      ].join("\n")
      expect((await run("python3", ["-c", script, url], { env })).stdout).toBe("hello\n")
      const node = "fetch(process.argv[1]).then(r => r.text()).then(t => console.log(t))"
      expect((await run(process.execPath, ["-e", node, url], { env })).stdout).toBe("hello\n")
      const untrusted = connect({ port, host: "127.0.0.1", servername: "localhost" })
      const [error] = await once(untrusted, "error")
      expect(error.code).toMatch(/UNABLE_TO_VERIFY|SELF_SIGNED/)
      untrusted.destroy()
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

describe("a trust bundle", () => {
  it("holds certificate blocks only, the authority's last", () => {
    using authority = createCallAuthority()
    const system = `# a comment\r\n${(rootCertificates[0] as string).replaceAll("\n", "\r\n")}\r\n\r\nnoise`
    const bundle = bundleWith(system, authority.caPem)
    expect(bundle.match(/BEGIN CERTIFICATE/g)).toHaveLength(2)
    expect(bundle.endsWith(authority.caPem)).toBe(true)
    expect(bundle).not.toMatch(/comment|noise|\r|\n\n/)
  })

  it("takes exactly one authority", () => {
    expect(() => bundleWith("", "")).toThrow(TypeError)
  })

  it("is named by every variable", () => {
    expect(trustEnvironment("/x/ca.pem")).toMatchObject({
      SSL_CERT_FILE: "/x/ca.pem",
      NODE_EXTRA_CA_CERTS: "/x/ca.pem",
      GIT_SSL_CAINFO: "/x/ca.pem",
    })
  })
})

let count = 0
async function saved(text: string): Promise<string> {
  count += 1
  const path = join(folder, `${count}.pem`)
  await writeFile(path, text)
  return path
}
