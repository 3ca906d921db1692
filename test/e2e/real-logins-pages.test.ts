/**
 * Programs that wait for a person's browser inside their sandbox, with Debian's Chromium: a page with PKCE, and rclone. Their
 * tokens stay out of the sandbox all the while.
 */
import { expect, it } from "vitest"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import { readReceipts } from "../../src/host/index.ts"
import type { PageToOpen } from "../../src/host/person.ts"
import { ensureChromium, openChromium, signInAt } from "../support/chromium.ts"
import { describeNeeding } from "../support/needing.ts"
import { startOidc } from "../support/servers/oidc.ts"
import { ensurePrograms } from "../support/servers/packages.ts"
import { openPlace, startService, toolNamed, trustingHere } from "./real-logins-world.ts"

/** A provider over TLS, trusted here as a provider on the web is. */
const openProvider = async () => {
  const authority = createCallAuthority()
  const oidc = await startOidc({ name: "id.test", certificate: authority.leafFor("id.test") })
  const trust = trustingHere(authority.caPem)
  return {
    oidc,
    service: `"id.test": "127.0.0.1:${oidc.tlsPort}"`,
    browser: () => openChromium({ "id.test": oidc.port }, { "id.test": oidc.tlsPort }),
    async [Symbol.asyncDispose]() {
      trust[Symbol.dispose]()
      await oidc[Symbol.asyncDispose]()
      authority.dispose()
    },
  }
}

const pager = `#!/usr/bin/python3
import base64, hashlib, http.server, json, os, secrets, sys, urllib.parse, urllib.request
FILE = os.path.join(os.environ.get("HOME", "/"), ".pager", "tokens.json")
verb = sys.argv[1]

def ask(path, form=None, token=None):
    data = None if form is None else urllib.parse.urlencode(form).encode()
    request = urllib.request.Request("https://id.test" + path, data=data)
    if token is not None:
        request.add_header("Authorization", "Bearer " + token)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()

def keep(told):
    os.makedirs(os.path.dirname(FILE), exist_ok=True)
    with open(FILE, "w") as file:
        json.dump(told, file)

if verb == "--version":
    print("pager 1.0.0")
elif verb == "login":
    verifier, state, came = secrets.token_urlsafe(48), secrets.token_urlsafe(16), {}
    class Back(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            came.update(urllib.parse.parse_qsl(urllib.parse.urlparse(self.path).query))
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<p>Thank you. The program has its answer.</p>")
        def log_message(self, *args):
            pass
    server = http.server.HTTPServer(("127.0.0.1", 0), Back)
    back = "http://127.0.0.1:%d/callback" % server.server_port
    challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
    print("Open https://id.test/auth?" + urllib.parse.urlencode({
        "client_id": "caisson", "response_type": "code", "redirect_uri": back, "state": state,
        "scope": "openid offline_access", "prompt": "consent",
        "code_challenge": challenge, "code_challenge_method": "S256"}), flush=True)
    server.handle_request()
    if came.get("state") != state or "code" not in came:
        sys.exit("no code: " + str(came.get("error")) + " " + str(came.get("error_description")))
    status, told = ask("/token", {"grant_type": "authorization_code", "client_id": "caisson", "code": came["code"],
        "redirect_uri": back, "code_verifier": verifier})
    if status != 200:
        sys.exit("not taken: " + str(told))
    keep(told)
elif verb == "refresh":
    with open(FILE) as file:
        held = json.load(file)
    status, told = ask("/token", {"grant_type": "refresh_token", "client_id": "caisson", "refresh_token": held["refresh_token"]})
    if status != 200:
        sys.exit("refused")
    keep({**held, **told})
else:
    try:
        with open(FILE) as file:
            held = json.load(file)
    except OSError:
        sys.exit(4)
    if verb == "held":
        print(held["access_token"])
        sys.exit(0)
    status, told = ask("/me", token=held["access_token"])
    if status != 200:
        sys.exit(4)
    print(told["sub"])
`

describeNeeding("a browser", ensureChromium(), () => {
  it("a program's own page with PKCE comes back to it from Debian's Chromium, and it calls, refreshes and is signed out", async () => {
    await using provider = await openProvider()
    const { oidc } = provider
    await using place = await openPlace(`egress: { services: { ${provider.service} } }\n`, {
      "pager/pager.py": pager,
      "pager/tools/who/TOOL.md": toolNamed("pager.who"),
      "pager/tools/held/TOOL.md": toolNamed("pager.held"),
      "pager/DRIVER.md": `---
name: Pager
id: pager
description: A program that waits for a browser.
version: 1.0.0
kind: cli
bin: ./pager.py
install: [{ method: vendored, path: ./pager.py }]
version_check: { cmd: ./pager.py --version, parse: 'pager (\\d+\\.\\d+\\.\\d+)', range: ^1.0.0 }
auth:
  state: { paths: ["~/.pager/**"] }
  login: { cmd: ./pager.py login, interactive: false, completes_when: { cmd: ./pager.py who } }
  refresh: { cmd: ./pager.py refresh }
  expiry: { detect: "exit_code:4" }
sandbox:
  network: { egress: ["id.test:443"], ingress: [] }
  fs: { read: [], write: ["~/.pager/**"], deny: [] }
  exec: { allow: false }
  env: { pass: [], set: {} }
output: { default_format: text }
metadata: { oauth: { token_endpoints: ["https://id.test/token"] } }
implements:
  - { tool: ./tools/who/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ["who"] } } }
  - { tool: ./tools/held/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ["held"] } } }
---
`,
    })
    oidc.accessTokenSeconds = 1
    const pages: PageToOpen[] = []
    const ended: ReturnType<typeof signInAt>[] = []
    {
      await using browser = await provider.browser()
      const report = await place.login("pager", {
        open: (page) => {
          pages.push(page)
          ended.push(signInAt(browser, page.through ?? page.url))
        },
      })
      const shown = await Promise.all(ended)
      expect([report, shown]).toMatchObject([{ ok: true, state: "authed", account: "alice" }, expect.anything()])
      expect(shown.map((each) => each.text)).toEqual(["Thank you. The program has its answer."])
    }
    expect(pages).toMatchObject([
      { from: "program", url: expect.stringMatching(/^https:\/\/id\.test\/auth\?/) as string },
    ])
    expect(new URL(pages[0]?.through ?? "").pathname).toMatch(/^\/caisson\//)
    // The token of a second's life ended meanwhile, or does in the next call: it is refreshed, and the call done.
    oidc.accessTokenSeconds = 3600
    expect(await place.call("pager.who")).toMatchObject({ ok: true, value: "alice\n" })
    expect(await place.call("pager.held")).toMatchObject({
      value: expect.stringMatching(/^caisson-access-1-[0-9a-f]{32}\n$/) as string,
    })
    expect(oidc.given.length).toBeGreaterThan(1)
    for (const token of oidc.given) expect(place.kept()).not.toContain(token)
    expect(readReceipts(place.data).filter(({ action }) => action === "login.callback_refused")).toEqual([])
    expect(await place.logout("pager")).toMatchObject({ ok: true })
    expect(await place.call("pager.who")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  })
})

const missing = ensureChromium() ?? ensurePrograms({ rclone: "rclone" })
describeNeeding("rclone", missing, () => {
  it("signs in by the page that it waits for on its own loopback, is proven by what it may ask there, and asks it", async () => {
    await using provider = await openProvider()
    const { oidc } = provider
    await using drive = await startService(["www.googleapis.com"], ({ url = "", headers }) => {
      const token = (headers.authorization ?? "").replace(/^Bearer /, "")
      if (!oidc.given.includes(token)) return [401, { error: { code: 401, message: "Invalid Credentials" } }]
      if (url.startsWith("/drive/v3/about"))
        return [
          200,
          {
            user: { emailAddress: "alice@drive.test", displayName: "Alice" },
            storageQuota: { limit: "1024", usage: "24" },
          },
        ]
      if (url.startsWith("/drive/v3/files/root")) return [200, { id: "of-the-root" }]
      return [404, {}]
    })
    using _trust = trustingHere(drive.caPem)
    await using place = await openPlace(
      `egress: { services: { ${provider.service}, "www.googleapis.com": "127.0.0.1:${drive.port}" } }\n`,
      {
        "clone/clone.sh": `#!/bin/sh\n[ "$1" = --version ] && echo cloning 1.0.0 && exit\nexec rclone "$@"\n`,
        "clone/tools/quota/TOOL.md": toolNamed("clone.quota"),
        "clone/DRIVER.md": `---
name: Clone
id: clone
description: rclone, and a drive.
version: 1.0.0
kind: cli
bin: ./clone.sh
install: [{ method: vendored, path: ./clone.sh }]
version_check: { cmd: ./clone.sh --version, parse: 'cloning (\\d+\\.\\d+\\.\\d+)', range: ^1.0.0 }
auth:
  state: { paths: ["~/.config/rclone/**"] }
  login:
    cmd: ./clone.sh config create mine drive client_id=rclone client_secret=known-to-everybody-5b1f0c2e9d auth_url=https://id.test/auth token_url=https://id.test/token scope=drive
    interactive: false
    completes_when: { cmd: "./clone.sh about mine: --json" }
sandbox:
  network: { egress: ["id.test:443", "www.googleapis.com:443"], ingress: [] }
  fs: { read: [], write: ["~/.config/rclone/**"], deny: [] }
  exec: { allow: true, spawn: [rclone] }
  env: { pass: [], set: {} }
output: { default_format: text }
metadata: { oauth: { token_endpoints: ["https://id.test/token"], hosts: ["www.googleapis.com"] } }
implements: [{ tool: ./tools/quota/TOOL.md, version: ^1.0.0, metadata: { cli: { argv: ["about", "mine:", "--json"] } } }]
---
`,
      },
    )
    expect(await place.call("clone.quota")).toMatchObject({ ok: false, error: { code: "auth_required" } })
    const ended: ReturnType<typeof signInAt>[] = []
    const pages: PageToOpen[] = []
    {
      await using browser = await provider.browser()
      const report = await place.login("clone", {
        open: (page) => {
          pages.push(page)
          if (page.through !== undefined) ended.push(signInAt(browser, page.through))
        },
      })
      const shown = await Promise.all(ended)
      expect({ report, shown, pages, seen: drive.seen }).toMatchObject({ report: { ok: true, state: "authed" } })
      expect(shown.map(({ text }) => text).join()).toMatch(/Success!/)
    }
    expect(await place.call("clone.quota")).toMatchObject({
      ok: true,
      value: expect.stringMatching(/"total": 1024/) as string,
    })
    expect(oidc.grants).toEqual([{ type: "authorization_code", status: 200 }])
    expect(oidc.given.length).toBeGreaterThan(1)
    for (const token of oidc.given) expect(place.kept()).not.toContain(token)
    expect(await place.logout("clone")).toMatchObject({ ok: true })
    expect(await place.call("clone.quota")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  })
})
