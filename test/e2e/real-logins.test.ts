/** Programs and a browser as people have them, signed in to real providers on loopback: login, proof, call, logout. */
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer, type Server } from "node:https"
import type { IncomingMessage, ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { once } from "node:events"
import { text } from "node:stream/consumers"
import { expect, it } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { createHost, processCaller } from "../../src/host/index.ts"
import type { Host } from "../../src/host/types.ts"
import type { PageToOpen, Person } from "../../src/host/person.ts"
import { ensureChromium, openChromium, signInAt } from "../support/chromium.ts"
import { describeNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { startOidc } from "../support/servers/oidc.ts"
import { ensurePrograms } from "../support/servers/packages.ts"
import { openFolder } from "./host-world.ts"

const caller = processCaller("alice")

interface Place extends AsyncDisposable {
  readonly host: Host
  readonly data: string
  readonly workspace: string
  call(tool: string): Promise<unknown>
  login(driver: string, person: Person): ReturnType<Host["login"]>
  logout(driver: string): ReturnType<Host["logout"]>
  /** every file below the data folder, as one text */
  kept(): string
}

/** What is being removed just then is as good as gone. */
const ifThere = <T>(read: () => T, gone: T): T => {
  try {
    return read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return gone
    throw error
  }
}
const everything = (folder: string): string =>
  ifThere(() => readdirSync(folder, { withFileTypes: true }), [])
    .map((entry) => {
      const path = join(entry.parentPath, entry.name)
      if (entry.isDirectory()) return everything(path)
      return entry.isFile() ? ifThere(() => readFileSync(path, "latin1"), "") : ""
    })
    .join("\n")

const openPlace = async (config: string, files: Readonly<Record<string, string>>): Promise<Place> => {
  const folder = openFolder()
  const [data, workspace, manifests] = [join(folder, "data"), join(folder, "work"), join(folder, "m")]
  mkdirSync(workspace)
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(manifests, path, ".."), { recursive: true })
    writeFileSync(join(manifests, path), content)
    if (content.startsWith("#!")) chmodSync(join(manifests, path), 0o755)
  }
  const file = join(folder, "caisson.yaml")
  writeFileSync(file, config, { mode: 0o600 })
  const host = await createHost({ data, manifests: [manifests], config: file })
  return {
    host,
    data,
    workspace,
    call: (tool) => host.call({ tool, input: {}, workspace }, { caller, approved: true }),
    login: (driver, person) => host.login(driver, { caller, workspace, person }),
    logout: (driver) => host.logout(driver, { caller, workspace }),
    kept: () => (existsSync(data) ? everything(data) : ""),
    async [Symbol.asyncDispose]() {
      await host.close()
      removeFolder(folder)
    },
  }
}

interface Service extends AsyncDisposable {
  readonly port: number
  readonly caPem: string
  readonly seen: string[]
}
type Answer = (request: IncomingMessage, body: string) => readonly [number, object]

/** HTTPS under any name, with a test authority's certificates. */
const startService = async (names: readonly string[], answer: Answer): Promise<Service> => {
  const authority = createCallAuthority()
  const { createSecureContext } = await import("node:tls")
  const seen: string[] = []
  const server: Server = createServer(
    {
      ...authority.leafFor(names[0] ?? ""),
      SNICallback: (name, done) => done(null, createSecureContext(authority.leafFor(name))),
    },
    (request: IncomingMessage, response: ServerResponse) => {
      void text(request).then((body) => {
        const [status, value] = answer(request, body)
        seen.push(`${request.method} ${request.headers.host}${request.url?.split("?")[0]} ${status}`)
        response.writeHead(status, { "content-type": "application/json; charset=utf-8" }).end(JSON.stringify(value))
      })
    },
  )
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  return {
    port: (server.address() as AddressInfo).port,
    caPem: authority.caPem,
    seen,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, "close")
      authority.dispose()
    },
  }
}

/** A program of the system's that trusts the test's authority. */
const trusting = (program: string): string =>
  `#!/bin/sh\n[ "$1" = --version ] && echo trusting 1.0.0 && exit\nSSL_CERT_FILE="\${0%/*}/ca.pem" exec ${program} "$@"\n`
const toolNamed = (id: string): string =>
  `---\nname: ${id}\nid: ${id}\nversion: 1.0.0\ndescription: d\ninputs: { type: object }\noutputs: { type: string }\n---\n`

describeNeeding("a browser", ensureChromium(), () => {
  it("the host's own login with PKCE comes back from Debian's Chromium, and serves calls until the logout", async () => {
    const fixtures = join(import.meta.dirname, "../../fixtures/logins-oauth")
    await using oidc = await startOidc({ name: "id.test" })
    await using place = await openPlace(
      `egress: { services: { "id.test": "127.0.0.1:${oidc.port}" } }
manifests: ["${fixtures}"]
logins:
  desk: { flow: authorization-code, issuer: "http://id.test", client_id: caisson, scopes: [openid, offline_access] }
`,
      { "none.txt": "" },
    )
    const browser = await openChromium({ "id.test": oidc.port })
    try {
      const ended: ReturnType<typeof signInAt>[] = []
      const report = await place.login("desk", { open: (page) => ended.push(signInAt(browser, page.url)) })
      expect(report).toMatchObject({ ok: true, state: "authed", account: "alice" })
      expect((await Promise.all(ended)).map(({ text: shown }) => shown)).toEqual([
        "This login went back to Caisson. You can close this page.",
      ])
    } finally {
      await browser.close()
    }
    expect(await place.call("desk.who")).toMatchObject({ ok: true, value: { sub: "alice" } })
    expect(await place.logout("desk")).toMatchObject({ ok: true })
    expect(await place.call("desk.who")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  })
})

describeNeeding("gh", ensurePrograms({ gh: "gh" }), () => {
  it("signs in by its device flow, is proven by its own status, calls, and is signed out", async () => {
    let asked = 0
    await using github = await startService(["github.com", "api.github.com"], ({ url = "", headers }, body) => {
      if (url.startsWith("/login/device/code"))
        return [
          200,
          {
            device_code: "d-1",
            user_code: "ABCD-1234",
            verification_uri: "https://github.com/login/device",
            interval: 1,
            expires_in: 600,
          },
        ]
      if (url.startsWith("/login/oauth/access_token")) {
        asked += 1
        return asked === 1
          ? [200, { error: "authorization_pending" }]
          : [200, { access_token: "gho_of_alice_3b1d9c0a7f55e2", token_type: "bearer", scope: "repo,read:org,gist" }]
      }
      if (headers.authorization !== "token gho_of_alice_3b1d9c0a7f55e2") return [401, { message: "Bad credentials" }]
      if (url.startsWith("/graphql"))
        return [200, { data: { viewer: { login: body.includes("viewer") ? "alice" : "" } } }]
      return [200, { login: "alice" }]
    })
    await using place = await openPlace(
      `egress: { services: { "github.com": "127.0.0.1:${github.port}", "api.github.com": "127.0.0.1:${github.port}" } }\n`,
      {
        "gh/hub.sh": trusting("gh"),
        "gh/ca.pem": github.caPem,
        "gh/tools/who/TOOL.md": toolNamed("hub.who"),
        "gh/DRIVER.md": `---
name: Hub
id: hub
description: GitHub's own program.
version: 1.0.0
kind: cli
bin: ./hub.sh
install: [{ method: vendored, path: ./hub.sh }]
version_check: { cmd: ./hub.sh --version, parse: 'trusting (\\d+\\.\\d+\\.\\d+)', range: ^1.0.0 }
auth:
  state: { paths: ["~/.config/gh/**"] }
  login:
    cmd: ./hub.sh auth login --hostname github.com --git-protocol https --web
    interactive: false
    completes_when: { cmd: ./hub.sh api user --jq .login }
sandbox:
  network: { egress: ["github.com:443", "api.github.com:443"], ingress: [] }
  fs: { read: [], write: ["~/.config/gh/**"], deny: [] }
  exec: { allow: true, spawn: [gh] }
  env: { pass: [], set: {} }
output: { default_format: text }
implements:
  - { tool: ./tools/who/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ["api", "user", "--jq", ".login"] } } }
---
`,
      },
    )
    expect(await place.call("hub.who")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const pages: PageToOpen[] = []
    const report = await place.login("hub", { open: (page) => pages.push(page) })
    expect([report, github.seen]).toMatchObject([{ ok: true, state: "authed", account: "alice" }, expect.anything()])
    expect(pages).toEqual([{ url: "https://github.com/login/device", code: "ABCD-1234", from: "program" }])
    expect(await place.call("hub.who")).toMatchObject({ ok: true, value: expect.stringContaining("alice") as string })
    expect(await place.logout("hub")).toMatchObject({ ok: true })
    expect(await place.call("hub.who")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    expect(place.kept()).not.toContain("gho_of_alice")
  })
})
