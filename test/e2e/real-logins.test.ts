/** Programs and a browser as people have them, signed in to real providers on loopback: login, proof, call, logout. */
import { join } from "node:path"
import { expect, it } from "vitest"
import type { PageToOpen } from "../../src/host/person.ts"
import { ensureChromium, openChromium, signInAt } from "../support/chromium.ts"
import { describeNeeding } from "../support/needing.ts"
import { startOidc } from "../support/servers/oidc.ts"
import { ensurePrograms } from "../support/servers/packages.ts"
import { ensureVerdaccio, startVerdaccio } from "../support/servers/verdaccio.ts"
import { openPlace, startService, toolNamed, trusting, typing } from "./real-logins-world.ts"

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

describeNeeding("npm and a registry", ensureVerdaccio(), () => {
  it("signs in with a name and a password at a terminal, is proven by its own whoami, and reads what others may not", async () => {
    await using registry = await startVerdaccio()
    const at = `http://127.0.0.1:${registry.port}`
    await using place = await openPlace(`egress: { services: { "registry.test": "127.0.0.1:${registry.port}" } }\n`, {
      "pack/pack.sh": `#!/bin/sh\n[ "$1" = --version ] && echo packing 1.0.0 && exit\nexec npm --registry=http://registry.test/ --no-update-notifier --no-fund --no-audit "$@"\n`,
      "pack/tools/who/TOOL.md": toolNamed("pack.who"),
      "pack/tools/see/TOOL.md": toolNamed("pack.see"),
      "pack/DRIVER.md": `---
name: Pack
id: pack
description: npm, and a registry.
version: 1.0.0
kind: cli
bin: ./pack.sh
install: [{ method: vendored, path: ./pack.sh }]
version_check: { cmd: ./pack.sh --version, parse: 'packing (\\d+\\.\\d+\\.\\d+)', range: ^1.0.0 }
auth:
  state: { paths: ["~/.npmrc"] }
  login:
    cmd: ./pack.sh login --auth-type=legacy
    interactive: true
    completes_when: { cmd: ./pack.sh whoami }
sandbox:
  network: { egress: ["registry.test:80"], ingress: [] }
  fs: { read: [], write: ["~/.npmrc"], deny: [] }
  exec: { allow: true, spawn: [npm, node] }
  env: { pass: [], set: {} }
output: { default_format: text }
implements:
  - { tool: ./tools/who/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ["whoami"] } } }
  - { tool: ./tools/see/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ["view", "@locked/thing", "version"] } } }
---
`,
    })
    const tarball = Buffer.from("not looked at").toString("base64")
    expect(await place.call("pack.who")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const report = await place.login(
      "pack",
      typing([
        ["Username:", "alice"],
        ["Password:", "a-password-of-hers-5b1f"],
        ["Email", "alice@registry.test"],
      ]),
    )
    expect(report).toMatchObject({ ok: true, state: "authed", account: "alice" })
    expect(await place.call("pack.who")).toMatchObject({ ok: true, value: "alice\n" })

    // Somebody else publishes what only those may see who are signed in.
    const other = await fetch(`${at}/-/user/org.couchdb.user:bob`, {
      method: "PUT",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        _id: "org.couchdb.user:bob",
        name: "bob",
        password: "his-own-77",
        type: "user",
        roles: [],
      }),
    })
    const { token } = (await other.json()) as { token: string }
    const name = "@locked/thing"
    const published = await fetch(`${at}/${name.replace("/", "%2f")}`, {
      method: "PUT",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify({
        _id: name,
        name,
        "dist-tags": { latest: "1.0.0" },
        versions: { "1.0.0": { name, version: "1.0.0", dist: { tarball: `${at}/${name}/-/thing-1.0.0.tgz` } } },
        _attachments: { "thing-1.0.0.tgz": { content_type: "application/octet-stream", data: tarball, length: 13 } },
      }),
    })
    expect(published.status).toBe(201)
    expect(await place.call("pack.see")).toMatchObject({ ok: true, value: "1.0.0\n" })
    expect(place.kept()).not.toMatch(/a-password-of-hers|_authToken/)
    expect(await place.logout("pack")).toMatchObject({ ok: true })
    expect(await place.call("pack.who")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  })
})
