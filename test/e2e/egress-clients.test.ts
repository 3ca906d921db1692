/**
 * Real client programs inside one sandbox, in front of real web servers: each by the proxy variables and, where it
 * can, without them; each refused where the name is not declared, with a verdict that says so.
 */
import { existsSync } from "node:fs"
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest"
import { createEgressProxy, type EgressProxy } from "../../src/egress-proxy/index.ts"
import { trustEnvironment } from "../../src/egress-proxy/tls/trust.ts"
import type { Verdict } from "../../src/egress-proxy/types.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { type Occupant, occupy, proxyPort } from "../support/occupant.ts"
import { describeNeeding } from "../support/needing.ts"
import { descendants, removeFolder, stillAlive, temporaryFolder, until } from "../support/sealed.ts"
import { ensurePrograms, programAt } from "../support/servers/packages.ts"
import { startWeb, type WebServer } from "../support/servers/web.ts"

const bundle = "/run/caisson/ca.pem"
const proxyUrl = `http://127.0.0.1:${proxyPort}`
const variables = {
  HTTP_PROXY: proxyUrl,
  HTTPS_PROXY: proxyUrl,
  http_proxy: proxyUrl,
  https_proxy: proxyUrl,
  NO_PROXY: "",
  no_proxy: "",
}
const programs = ["python3", "sh", "env", "curl", "openssl", "node", "npm", "java"]
ensurePrograms({ curl: "curl", openssl: "openssl" })
const spawn = Object.fromEntries(
  programs.flatMap((name) => (programAt(name) === undefined ? [] : [[name, programAt(name) as string]])),
)

const data = temporaryFolder("data")
const backend = createNamespaceBackend({ data })
let web: WebServer
let occupant: Occupant
let proxy: EgressProxy
let verdicts: Verdict[]

beforeAll(async () => {
  web = await startWeb()
  occupant = await occupy(backend, {
    spawn,
    files: { [bundle]: Buffer.from(web.caPem) },
    env: { PATH: "/usr/bin:/bin", HOME: "/home/tool", LANG: "C.UTF-8", ...trustEnvironment(bundle) },
    limits: { memoryBytes: 2 * 1024 ** 3, pids: 1024, openFiles: 4096, diskBytes: 512 * 1024 ** 2 },
  })
})
afterAll(async () => {
  const ours = descendants(process.pid)
  await occupant?.[Symbol.asyncDispose]()
  await web?.[Symbol.asyncDispose]()
  await backend[Symbol.asyncDispose]()
  await until(() => stillAlive(ours).length === 0, "every process is gone")
  removeFolder(data)
})
beforeEach(async () => {
  verdicts = []
  proxy = await createEgressProxy({
    egress: ["web.test:443", "npm.test:443", "plain.test:80"],
    services: {
      "web.test": `127.0.0.1:${web.httpsPort}`,
      "npm.test": `127.0.0.1:${web.httpsPort}`,
      "plain.test": `127.0.0.1:${web.httpPort}`,
    },
    onVerdict: (verdict) => verdicts.push(verdict),
  })
  proxy.serve(occupant.channel)
})
afterEach(() => proxy.close())

const allowed = (host: string) => expect.arrayContaining([expect.objectContaining({ decision: "allow", host })])
const denied = (host: string) => expect.arrayContaining([expect.objectContaining({ decision: "deny", host })])
/** The two ways that a program finds its way out. */
const ways = [
  ["by the proxy variables", variables],
  ["without proxy variables", {}],
] as const

const noCurl = ensurePrograms({ curl: "curl" })
describeNeeding("curl", noCurl, () => {
  for (const [how, env] of ways) {
    it(`fetches over https and http ${how}, and nothing undeclared`, async () => {
      const curl = (url: string) => occupant.run(["/usr/bin/curl", "-sS", "-m", "20", url], { env })
      expect(await curl("https://web.test/x")).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("served /x"),
        stderr: "",
      })
      expect(await curl("http://plain.test/y")).toMatchObject({ code: 0, stdout: expect.stringContaining("served /y") })
      expect(verdicts).toEqual(allowed("web.test"))
      await curl("https://evil.test/")
      await curl("http://evil.test/")
      expect(verdicts).toEqual(denied("evil.test"))
    })
  }
  it("reads in the refusal what to declare", async () => {
    const ran = await occupant.run(["/usr/bin/curl", "-sS", "http://evil.test/"], { env: variables })
    expect(JSON.parse(ran.stdout)).toMatchObject({
      layer: "egress",
      reason: "host_not_allowed",
      host: "evil.test",
      port: 80,
      hint: expect.stringContaining("network.egress"),
    })
  })
})

describe("python", () => {
  const source = (url: string) => `
import sys, urllib.request, urllib.error
try: sys.stdout.write(urllib.request.urlopen(${JSON.stringify(url)}, timeout=20).read().decode())
except urllib.error.URLError as error: sys.exit(str(error))`
  for (const [how, env] of ways) {
    it(`urllib fetches ${how}, and nothing undeclared`, async () => {
      const fetched = (url: string) => occupant.run(["/usr/bin/python3", "-c", source(url)], { env })
      expect(await fetched("https://web.test/p")).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("served /p"),
      })
      expect(await fetched("http://plain.test/q")).toMatchObject({
        code: 0,
        stdout: expect.stringContaining("served /q"),
      })
      expect((await fetched("https://evil.test/")).code).toBe(1)
      expect(verdicts).toEqual(denied("evil.test"))
    })
  }
})

const noOpenssl = ensurePrograms({ openssl: "openssl" })
describeNeeding("openssl s_client", noOpenssl, () => {
  const handshake = (host: string, name: string, ...more: readonly string[]) =>
    occupant.run(
      [
        "/usr/bin/openssl",
        "s_client",
        "-connect",
        `${host}:443`,
        "-servername",
        name,
        "-CAfile",
        bundle,
        "-verify_return_error",
        "-brief",
        ...more,
      ],
      { stdin: "", seconds: 20 },
    )
  for (const [how, more] of [
    ["through CONNECT", ["-proxy", `127.0.0.1:${proxyPort}`]],
    ["by name alone", []],
  ] as const) {
    it(`shakes hands with the declared host ${how}, and under no other name`, async () => {
      const good = await handshake("web.test", "web.test", ...more)
      expect(good).toMatchObject({ code: 0, stderr: expect.stringContaining("Verification: OK") })
      const fronted = await handshake("web.test", "evil.test", ...more)
      expect(fronted.code).not.toBe(0)
      expect(fronted.stderr).toMatch(/unrecognized name/i)
      expect(verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "sni_mismatch", host: "web.test" })
      expect((await handshake("evil.test", "evil.test", ...more)).code).not.toBe(0)
      expect(verdicts.at(-1)).toMatchObject({ decision: "deny", reason: "host_not_allowed", host: "evil.test" })
    })
  }
})

describe("a WebSocket client", () => {
  const source = (host: string, how: "proxy" | "plain" | "tls") => `
import os, socket, ssl, sys
how, host = ${JSON.stringify(how)}, ${JSON.stringify(host)}
s = socket.create_connection(("127.0.0.1", ${proxyPort}) if how == "proxy" else (host, 443 if how == "tls" else 80), 20)
if how == "tls": s = ssl.create_default_context().wrap_socket(s, server_hostname=host)
target = "http://%s/chat" % host if how == "proxy" else "/chat"
s.sendall(("GET %s HTTP/1.1\\r\\nHost: %s\\r\\nConnection: Upgrade\\r\\nUpgrade: websocket\\r\\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13\\r\\n\\r\\n" % (target, host)).encode())
head = b""
while b"\\r\\n\\r\\n" not in head:
    chunk = s.recv(4096)
    if not chunk: sys.exit("closed: %r" % head)
    head += chunk
if b" 101 " not in head.split(b"\\r\\n")[0]: sys.exit(head.decode())
for word in (b"hello", b"again"):
    mask = os.urandom(4)
    s.sendall(bytes([0x81, 0x80 | len(word)]) + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(word)))
    frame = b""
    while len(frame) < 2 + len(word): frame += s.recv(100)
    print(frame[2:].decode())
`
  for (const [how, host] of [
    ["proxy", "plain.test"],
    ["plain", "plain.test"],
    ["tls", "web.test"],
  ] as const) {
    it(`exchanges frames (${how}), and not with an undeclared host`, async () => {
      expect(await occupant.run(["/usr/bin/python3", "-c", source(host, how)])).toMatchObject({
        code: 0,
        stdout: "hello\nagain\n",
      })
      expect((await occupant.run(["/usr/bin/python3", "-c", source("evil.test", how)])).code).toBe(1)
      expect(verdicts).toEqual(denied("evil.test"))
    })
  }
})

const noNpm =
  programAt("npm") === undefined || !existsSync("/usr/lib/node_modules/npm")
    ? "npm is not in /usr/bin here: apt-get install -y npm"
    : undefined
describeNeeding("npm", noNpm, () => {
  for (const [how, env] of ways) {
    it(`asks a registry ${how}, and no undeclared one`, async () => {
      const npm = (registry: string) =>
        occupant.run(
          [
            "/usr/bin/npm",
            "view",
            "tiny",
            "version",
            "--registry",
            registry,
            "--fetch-retries=0",
            "--cache=/tmp/npm",
            "--no-update-notifier",
          ],
          { env, seconds: 50 },
        )
      expect(await npm("https://npm.test/")).toMatchObject({ code: 0, stdout: "1.2.3\n" })
      expect((await npm("https://registry.evil.test/")).code).not.toBe(0)
      expect(verdicts).toEqual(denied("registry.evil.test"))
    })
  }
})

const noJava =
  programAt("java") === undefined ? "java is not installed: apt-get install -y default-jdk-headless" : undefined
describeNeeding("Java", noJava, () => {
  const main = `import java.net.*;
public class Main { public static void main(String[] a) throws Exception { for (String u : a) try (var in = new URL(u).openStream()) { System.out.print(new String(in.readAllBytes())); } catch (UnknownHostException e) { System.out.println("unknown " + e.getMessage()); } } }`
  it("reaches a declared host by its name, and is told of another that there is none", async () => {
    const start =
      "import os, sys; open('/tmp/Main.java', 'w').write(sys.stdin.read()); os.execv('/usr/bin/java', ['java', '-Xmx256m', '-XX:-UsePerfData', '/tmp/Main.java', *sys.argv[1:]])"
    const ran = await occupant.run(["/usr/bin/python3", "-c", start, "http://plain.test/j", "http://evil.test/"], {
      stdin: main,
      seconds: 50,
    })
    expect(ran.stdout).toContain("served /j")
    expect(ran.stdout).toContain("unknown evil.test")
    expect(verdicts).toEqual(allowed("plain.test"))
    expect(verdicts).toEqual(denied("evil.test"))
  })

  const modern = `import java.net.URI; import java.net.http.*;
public class Main { public static void main(String[] a) throws Exception {
  var client = HttpClient.newHttpClient();
  for (var request : new HttpRequest[] { HttpRequest.newBuilder(URI.create(a[0] + "g")).build(), HttpRequest.newBuilder(URI.create(a[0] + "p")).POST(HttpRequest.BodyPublishers.ofString("body")).build() }) {
    var answer = client.send(request, HttpResponse.BodyHandlers.ofString());
    System.out.println(answer.statusCode() + " " + answer.version() + " " + answer.body());
  } } }`
  it("HttpClient offers HTTP/2 without TLS by itself, and is served GET and POST", async () => {
    const start =
      "import os, sys; open('/tmp/Main.java', 'w').write(sys.stdin.read()); os.execv('/usr/bin/java', ['java', '-Xmx256m', '-XX:-UsePerfData', '/tmp/Main.java', *sys.argv[1:]])"
    const ran = await occupant.run(["/usr/bin/python3", "-c", start, "http://plain.test/"], {
      stdin: modern,
      seconds: 50,
    })
    expect(ran.stdout).toMatch(/^200 HTTP_1_1 [^]*served \/g[^]*\n200 HTTP_1_1 [^]*served \/p/)
    expect(verdicts.filter(({ protocol }) => protocol !== "dns").every(({ decision }) => decision === "allow")).toBe(
      true,
    )
  })
})

const chromium = ["/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser"].find((path) =>
  existsSync(path),
)
const noChromium = chromium === undefined ? "chromium is not installed: apt-get install -y chromium" : undefined
describeNeeding("Chromium headless", noChromium, () => {
  for (const [how, more] of [
    ["through its proxy setting", [`--proxy-server=${proxyUrl}`]],
    ["by name alone", ["--no-proxy-server"]],
  ] as const) {
    it(`renders a page ${how}, and is refused an undeclared host`, async () => {
      const dump = (url: string) =>
        occupant.run(
          [
            chromium ?? "",
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-crash-reporter",
            "--disable-background-networking",
            "--no-first-run",
            "--disable-features=dbus",
            "--user-data-dir=/tmp/chromium",
            ...more,
            "--virtual-time-budget=3000",
            "--dump-dom",
            url,
          ],
          { seconds: 50 },
        )
      const page = await dump("http://plain.test/c")
      expect(page.stdout, page.stderr).toContain("served /c")
      await dump("http://evil.test/")
      expect(verdicts).toEqual(denied("evil.test"))
    })
  }
})
