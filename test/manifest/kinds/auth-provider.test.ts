import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { buildCatalogue, contentOf } from "../../../src/manifest/read/catalogue.ts"
import { discoverManifests } from "../../../src/manifest/read/discover.ts"
import type { AuthProvider, DriverContract } from "../../../src/manifest/types.ts"
import { cliFront, errors, load, toolFront, warnings } from "../from-text.ts"

const auth = "flow: device-code, tokenStore: { keychain: acme }"
const front = (block = auth, extra = ""): string =>
  `id: acme\ndescription: Acme's cloud.\napiBase: https://api.test\nauth: { ${block} }\n${extra}`
const read = (text: string, mode: "compat" | "strict" = "compat") => load("AUTH.md", text, mode)
const provider = (text: string): AuthProvider => {
  const result = read(text)
  if (!result.ok) throw new Error(JSON.stringify(result.diagnostics))
  return result.manifest as AuthProvider
}

describe("an AUTH.md", () => {
  it("is read as AIP-50 writes it, with its defaults", () => {
    const { source: _source, ...read } = provider(front())
    expect(read).toEqual({
      kind: "auth",
      id: "acme",
      description: "Acme's cloud.",
      apiBase: "https://api.test",
      flow: "device-code",
      clientId: "agentproto-cli",
      scopes: [],
      endpoints: {},
    })
    expect(errors(load("AUTH.md", front(), "strict"))).toEqual([])
  })
  it.each([
    [
      "guilde",
      'flow: service-auth, clientId: agentproto-cli, tokenStore: { keychain: g, account: "{server}" }',
      "service-auth",
    ],
    ["widget", 'flow: pat, tokenStore: { keychain: w, account: "{server}" }', "pat"],
  ])("of the spec's own example %s loads, also strictly", (_name, block, flow) => {
    const text = front(block, "install: { sealKey: /s, secretBacked: '/g/{guildId}/s' }")
    expect(provider(text).flow).toBe(flow)
    expect(read(text, "strict").diagnostics).toEqual([])
  })
  it("has scopes, an audience, an issuer and endpoints", () => {
    const block = `${auth}, clientId: caisson, scope: openid offline_access, issuer: "https://id.test", endpoints: { token: "https://id.test/t" }`
    expect(provider(front(block, "audience: api"))).toMatchObject({
      clientId: "caisson",
      scopes: ["openid", "offline_access"],
      audience: "api",
      issuer: "https://id.test",
      endpoints: { token: "https://id.test/t" },
    })
  })
  it.each([
    ["without an address", front().replace(/^apiBase.*$/m, ""), "missing-field @ apiBase"],
    ["of no flow", front("tokenStore: { keychain: a }"), "missing-field @ auth.flow"],
    ["of an unknown flow", front("flow: magic, tokenStore: { keychain: a }"), "not-one-of @ auth.flow"],
    ["of the reserved flow", front("flow: id-jag"), "flow-reserved @ auth.flow"],
    ["that keeps tokens nowhere", front("flow: pat"), "missing-field @ auth.tokenStore"],
    ["with a field more", front(`${auth}, token: x`), "unknown-key @ auth.token"],
    ["at a file", front().replace("https://api.test", "file:///etc/passwd"), "bad-value @ apiBase"],
    ["at an address with a password", front().replace("https://", "https://a:b@"), "bad-value @ apiBase"],
    ["at an address with a query", front(`${auth}, issuer: "https://id.test/?a=b"`), "bad-value @ auth.issuer"],
    [
      "whose endpoint leaves a part open",
      front(`${auth}, endpoints: { token: "https://id.test/\${input.x}" }`),
      "bad-value @ auth.endpoints.token",
    ],
  ])("%s is refused", (_what, text, said) => expect(errors(read(text))).toEqual([said]))

  it("tells every fault with what to write instead", () => {
    for (const { fix, path, message } of read(front("flow: magic, scope: 'a  b'")).diagnostics) {
      expect([fix, message]).not.toContain("")
      expect(path).toMatch(/^auth\./)
    }
  })
  it("warns of what is not spoken over TLS, and of what its flow does not use", () => {
    expect(warnings(read(front().replace("https:", "http:")))).toEqual(["login-not-https @ apiBase"])
    expect(warnings(read(front("flow: pat, clientId: x, tokenStore: { keychain: a }")))).toEqual([
      "field-unused @ auth.clientId",
    ])
  })
  it("with a word that AIP-50 does not have is taken, and refused strictly", () => {
    const text = front(`${auth}, endpoints: { token: "https://id.test/t" }`)
    expect(warnings(read(text))).toEqual(["auth-extension @ auth.endpoints"])
    expect(errors(read(text, "strict"))).toEqual(["auth-extension @ auth.endpoints"])
  })
})

describe("a driver", () => {
  let folder = ""
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "auth-md-"))
  })
  afterEach(() => rmSync(folder, { recursive: true }))
  const write = (file: string, text: string): void => {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    writeFileSync(join(folder, file), `---\n${text.trim()}\n---\n`)
  }
  const driverWith = (block: string): string =>
    cliFront({ network: "{ egress: ['api.test'] }", extra: `auth: { state: { env: [ACME_TOKEN] }${block} }` })
  const catalogue = () => buildCatalogue(discoverManifests([folder], { mode: "compat" }))
  const driver = (): DriverContract => {
    const [found] = catalogue().drivers
    if (found === undefined) throw new Error(JSON.stringify(catalogue().diagnostics))
    return found
  }
  beforeEach(() => write("t/TOOL.md", toolFront()))

  it("has the login that lies beside it, and none that lies elsewhere", () => {
    write("a/DRIVER.md", driverWith(""))
    write("b/AUTH.md", front())
    expect(driver().auth?.provider).toBeUndefined()
    expect(catalogue().diagnostics.map(({ rule }) => rule)).toContain("auth-unused")
    write("a/AUTH.md", front())
    expect(driver().auth?.provider).toMatchObject({ id: "acme", flow: "device-code" })
  })
  it("has the login that its `ref` leads to, and logs in without a command of its own", () => {
    write("a/DRIVER.md", driverWith(", ref: ../b/AUTH.md, login: { completes_when: { cmd: prog whoami } }"))
    write("b/AUTH.md", front())
    expect(driver().auth).toMatchObject({ provider: { id: "acme" }, login: { completesWhen: [{ by: "cmd" }] } })
    expect(driver().auth?.ref).toBeUndefined()
  })
  it("whose own program logs in at an issuer needs its token endpoint named, by either file", () => {
    const issuer = `${auth}, issuer: "https://api.test"`
    const block = driverWith(", login: { cmd: prog login, completes_when: { cmd: prog whoami } }")
    const said = () =>
      catalogue().diagnostics.flatMap(({ rule, severity, path }) =>
        rule === "token-endpoint-unnamed" ? [`${severity} @ ${path}`] : [],
      )
    write("a/DRIVER.md", block)
    write("a/AUTH.md", front())
    expect(said()).toEqual([])
    write("a/AUTH.md", front(issuer))
    expect(said()).toEqual(["warning @ auth.login.cmd"])
    write("a/AUTH.md", front(`${issuer}, endpoints: { token: "https://api.test/t" }`))
    expect(said()).toEqual([])
    write("a/AUTH.md", front(issuer))
    write("a/DRIVER.md", `${block}\nmetadata: { oauth: { token_endpoints: ["https://api.test/t"] } }`)
    expect(said()).toEqual([])
  })
  it("is another one where its AUTH.md is another one", () => {
    write("a/DRIVER.md", driverWith(""))
    write("a/AUTH.md", front())
    const before = contentOf(driver())
    write("a/AUTH.md", front(`${auth}, scope: admin`))
    expect(contentOf(driver())).not.toBe(before)
  })
  it.each([
    ["is not there", ", ref: ./none/AUTH.md", undefined, "auth-ref-unresolvable @ auth.ref"],
    ["does not load", "", "flow: id-jag", "auth-provider-invalid @ auth"],
  ])("whose AUTH.md %s is refused", (_what, block, login, said) => {
    write("a/DRIVER.md", driverWith(block))
    if (login !== undefined) write("a/AUTH.md", front(login))
    const of = discoverManifests([folder], { mode: "compat" }).find((each) =>
      (each.ok ? each.manifest.source.file : each.file).endsWith("DRIVER.md"),
    )
    expect(of === undefined ? [] : errors(of)).toEqual([said])
  })
  it("is told of hosts of its login that it does not declare", () => {
    write("a/DRIVER.md", driverWith(""))
    write("a/AUTH.md", front(`${auth}, endpoints: { token: "https://id.test/t" }`))
    const said = catalogue().diagnostics.filter(({ rule }) => rule === "address-not-in-egress")
    expect(said.map(({ fix }) => fix)).toEqual(["add `id.test` to `network.egress`"])
  })
})
