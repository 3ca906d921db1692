/** The rest of what the documents show, run: commands typed, programs run, drivers called; README, docs/*.md. */
import { cpSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:https"
import { createServer as createTcpServer, type AddressInfo, type Server } from "node:net"
import { join } from "node:path"
import { Writable } from "node:stream"
import { execa } from "execa"
import { pino } from "pino"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import * as client from "../../src/client/index.ts"
import { createCallAuthority } from "../../src/egress-proxy/tls/authority.ts"
import * as egress from "../../src/egress-proxy/index.ts"
import * as library from "../../src/host/index.ts"
import { launcher, scratch } from "../cli/run-caisson.ts"
import { openDaemonWorld } from "./daemon-world.ts"
import { openWorld } from "./host-world.ts"
import { blocksIn, blocksOf, clone, jsonIn, runPiece, type, writeShown } from "./typing.ts"

let room: ReturnType<typeof scratch>
beforeEach(() => {
  room = scratch()
})
afterEach(() => room[Symbol.dispose]())

const modules = { caisson: { ...library }, "caisson/client": { ...client }, "caisson/egress-proxy": { ...egress } }
const listening = async <T extends Server>(server: T): Promise<number> => {
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve))
  return (server.address() as AddressInfo).port
}
const keys = (value: object): readonly string[] => Object.keys(value).toSorted()

describe("the README", () => {
  const readme = readFileSync(join(clone, "README.md"), "utf8")

  test("its program, indented as it stands in a list, answers", async () => {
    const [, piece = ""] = /^ {3}```ts\n(.*?)^ {3}```/ms.exec(readme) ?? []
    const text = piece.replaceAll("createHost()", "createHost(own)")
    const scope = { own: { data: join(room.folder, "data") }, signal: AbortSignal.timeout(120_000) }
    expect(await runPiece(text, { modules, scope, value: "envelope" })).toMatchObject({ ok: true, value: [{}] })
  })

  test("its envelope has the fields that one has", async () => {
    const [shown = ""] = blocksIn(readme, "json")
    const input = JSON.stringify({ filter: ".items[].name", document: { items: [{ name: "bolt" }] } })
    const [real] = jsonIn(await type(`caisson call json.query -i '${input}'`, { room: room.folder }))
    expect(keys(real ?? {})).toEqual(keys(JSON.parse(shown) as object))
    expect(real).toMatchObject({ ok: true, value: ["bolt"], driver: "jq@1", effects: [], denied: [] })
  })
})

test("docs/authoring.md is typed as it is written", async () => {
  const said = jsonIn(await type(blocksOf("docs/authoring.md").join(""), { room: room.folder }))
  expect(said).toContainEqual(expect.objectContaining({ ok: true, value: "Hello, Ada.\n" }))
  expect(said).toContainEqual(expect.objectContaining({ ok: true, tool: "lines.sort" }))
  expect(said).toContainEqual(expect.objectContaining({ ok: true, passed: 1, failed: 0 }))
  expect(said).toContainEqual(expect.objectContaining({ ok: true, tool: "file.read", widening: [] }))
  expect(said).toContainEqual(expect.objectContaining({ ok: true, driver: "jq@1" }))
})

test("docs/run.md: the piece of a program answers with the command's end", async () => {
  await using world = await openWorld()
  const [piece = ""] = blocksOf("docs/run.md", "ts")
  const scope = { host: world.host, workspace: world.workspace, signal: AbortSignal.timeout(120_000) }
  expect(await runPiece(piece, { scope, value: "envelope" })).toMatchObject({
    ok: true,
    value: { exit_code: 0, stdout: expect.stringContaining("README.md") },
  })
})

test("docs/conform.md: the piece of a test file makes a test of each example, and they hold", async () => {
  const own = join(room.folder, "my-tools")
  await type(`caisson init --tool my.tool --driver my-driver --out ${own}`, { room: room.folder })
  const [piece = ""] = blocksOf("docs/conform.md", "ts")
  const made: [string, () => Promise<void>][] = []
  const asTest = (title: string, run: () => Promise<void>): void => void made.push([title, run])
  const text = piece.replaceAll('{ manifests: ["./my-tools"] }', "own").replace("const host", "host")
  const scope = { own: { data: join(room.folder, "data"), manifests: [own] }, host: undefined }
  const shown = { ...modules, vitest: { expect, test: asTest } }
  await using host = (await runPiece(text, { modules: shown, scope, value: "host" })) as library.Host
  expect(made.map(([title]) => title)).toEqual(["my-driver@1 · my.tool@1 · a greeting"])
  for (const [, run] of made) await run()
  expect(await host.approvals()).toEqual([])
})

describe("docs/api.md", () => {
  test("what is typed there is answered by a daemon", async () => {
    await using world = await openDaemonWorld("", { manifests: [] })
    const made = await world.daemon.host.tokens.issue({ user: "ana", workspaces: [world.workspace] })
    const token = made.ok ? made.value.token : ""
    const typed = blocksOf("docs/api.md").join("").replaceAll("http://127.0.0.1:7433", world.address)
    const said = await type(typed, { room: room.folder, env: { TOKEN: token } })
    expect(jsonIn(said)).toMatchObject([{ ok: true, value: [1] }])
  })

  test("the piece of a client makes calls, hears of them, and decides about one that is held", async () => {
    await using world = await openDaemonWorld("", { manifests: [] })
    const made = await world.daemon.host.tokens.issue({ user: "ana", agent: false, workspaces: "any" })
    const [piece = ""] = blocksOf("docs/api.md", "ts")
    const heard: string[] = []
    const scope = {
      token: made.ok ? made.value.token : "",
      workspace: world.workspace,
      input: { path: "a.txt", content: "hello\n" },
      console: { log: (event: string) => heard.push(event) },
    }
    const text = piece.replaceAll("http://127.0.0.1:7433", world.address)
    const [envelope, held] = (await runPiece(text, { modules, scope, value: "[envelope, held]" })) as [object, object]
    expect(envelope).toMatchObject({ ok: true, value: [1] })
    expect(held).toMatchObject({
      content: [expect.objectContaining({ path: "a.txt", diff: expect.stringContaining("+hello") })],
    })
    expect(heard).toEqual(expect.arrayContaining(["admitted", "held"]))
    expect(readFileSync(join(world.workspace, "a.txt"), "utf8")).toBe("hello\n")
  })
})

describe("docs/config.md", () => {
  test("grants are given, listed and taken back as it is written", async () => {
    const [create = "", list = "", revoke = ""] = blocksOf("docs/config.md").join("").split("\n")
    const id = `$(${list} --json | sed -E 's/.*"id":"([^"]+)".*/\\1/')`
    const commands = ["mkdir ~/notes", create, list, revoke.replace("ID", id), list].join("\n")
    const said = await type(commands, { room: room.folder })
    expect(said.join("\n")).toContain("tidying up")
    expect(jsonIn(said).at(-1) ?? said.at(-1)).not.toEqual(expect.stringContaining("tidying up"))
  })

  test("a caller of that form makes a call in the folders that it names", async () => {
    await using world = await openWorld()
    const piece = (blocksOf("docs/config.md", "ts")[0] ?? "").replaceAll("/srv/ana", world.workspace)
    const caller = (await runPiece(piece, { value: "caller" })) as library.Caller
    const call = (workspace: string): Promise<library.Envelope> =>
      world.host.call({ tool: "files.list", input: {}, workspace }, { caller })
    expect(await call(world.workspace)).toMatchObject({ ok: true })
    expect(await call(room.folder)).toMatchObject({ ok: false, error: { code: "not_found" } })
  })
})

describe("docs/egress-proxy.md", () => {
  test("the proxy is typed as it is written; its refusals and its lines are as they are shown", async () => {
    const database = createTcpServer((socket) => socket.end("hello"))
    const [behind, free] = [await listening(database), createTcpServer()]
    const port = await listening(free)
    await new Promise((resolve) => void free.close(resolve))
    try {
      const [typed = ""] = blocksOf("docs/egress-proxy.md")
      const own = typed.replaceAll("3128", `${port}`).replaceAll("127.0.0.1:5432", `127.0.0.1:${behind}`)
      const [policy = "", rest = ""] = own.split(/^(?=npx )/m)
      const [serve = "", ask = ""] = rest.split("\n")
      const refused = ask.replace("https://api.example.com/", "http://evil.test/").replace("curl", "curl -sS")
      const proxied = ask.replace("https://api.example.com/", "telnet://db.test:5432").replace("curl", "curl -sS -p")
      const said = await type(
        `cd ${room.folder}\n${policy}\nexec 9> log; ${serve.replace("npx caisson", `"${process.execPath}" "${launcher}"`)} >&9 2>&9 & pid=$!
        until curl -s -o /dev/null -x http://127.0.0.1:${port} http://evil.test/; do sleep 0.1; kill -0 $pid; done
        ${refused}; echo; ${proxied} < /dev/null; echo
        kill -TERM $pid; wait $pid || true; cat log`,
        { room: room.folder },
      )
      expect(said).toContain("hello")
      const [line = "", refusal = ""] = blocksOf("docs/egress-proxy.md", "json").map((text) =>
        text.replaceAll("\n", " "),
      )
      const answers = jsonIn(said) as readonly Record<string, unknown>[]
      const found = answers.find((each) => each["layer"] === "egress")
      expect(keys(found ?? {})).toEqual(keys(JSON.parse(refusal) as object))
      const allowed = answers.find((each) => each["decision"] === "allow")
      // A service of the operator's has no other names.
      const shown = keys(JSON.parse(line) as object).filter((key) => key !== "aliases")
      expect(keys(allowed ?? {})).toEqual(expect.arrayContaining([...shown]))
    } finally {
      await new Promise((resolve) => void database.close(resolve))
    }
  })

  test("the piece of a program makes a proxy, changes its policy and reads its record", async () => {
    const [piece = ""] = blocksOf("docs/egress-proxy.md", "ts")
    const quiet = new Writable({ write: (_chunk, _encoding, done) => done() })
    const scope = { pino: () => pino(quiet) }
    expect(await runPiece(piece, { modules, scope, value: "proxy.counters()" })).toMatchObject({ generation: 2 })
  })
})

test("docs/logins.md is typed as it is written, for a program by that name", async () => {
  const tools = join(room.folder, "tools", "gh")
  const data = join(room.folder, "home", ".caisson")
  mkdirSync(data, { recursive: true, mode: 0o700 })
  writeFileSync(join(data, "caisson.yaml"), `manifests: [${join(room.folder, "tools")}]\n`, { mode: 0o600 })
  await type(`caisson init --tool gh.whoami --driver gh --out ${tools} --input name:text`, { room: room.folder })
  const driver = readFileSync(join(tools, "DRIVER.md"), "utf8")
    .replace("version_check:", 'auth: { state: { paths: ["~/.gh"] }, login: { cmd: gh login } }\nversion_check:')
    .replace("write: []", 'write: ["~/.gh"]')
  writeFileSync(join(tools, "DRIVER.md"), driver)
  const program =
    '#!/bin/sh\ncase "$1" in --version) echo "gh 1.0.0";; login) echo token > ~/.gh;; *) cat ~/.gh;; esac\n'
  writeFileSync(join(tools, "bin", "gh"), program, { mode: 0o755 })
  const commands = blocksOf("docs/logins.md").join("").split("\n")
  const said = await type(`mkdir w; cd w\n${[...commands, commands[0]].join("\n")}`, {
    room: room.folder,
    cwd: room.folder,
  })
  const states = jsonIn(said).filter((each) => Array.isArray(each))
  expect(JSON.stringify(states[0])).toContain('"gh@1"')
  expect(said.join("\n")).toMatch(/authed/)
  expect(JSON.stringify(states.at(-1))).not.toContain('"authed"')
})

test("docs/operating.md: the unit that it copies is there, and the first token is made by what it types", async () => {
  // The other one is typed where there is an engine: compose-run.test.ts.
  const [unit = ""] = blocksOf("docs/operating.md")
  const commands = unit.replaceAll("/var/lib/caisson", join(room.folder, "var"))
  const said = await type(
    `sudo() {
      case "$1" in
        useradd) shift; for flag in "$@"; do case "$flag" in --*) useradd --help | grep -q -e "$flag" ;; esac; done ;;
        cp) test -f "\${2/\\/opt\\/caisson/${clone.replace(/\/$/, "").replaceAll("/", "\\/")}}" ;;
        systemctl) grep -q WantedBy= deploy/caisson.service ;;
        -u) shift 2; shift; export "$1"; shift; [ "$1" = /opt/caisson/bin/caisson.cjs ]; shift; caisson "$@" ;;
      esac
    }
    ${commands}`,
    { room: room.folder },
  )
  expect(said.join("\n")).toMatch(/csn_[A-Za-z0-9_-]{20}/)
})

test("docs/amplifier.md is typed as it is written, with modules of that name", async () => {
  const data = join(room.folder, "home", ".caisson")
  mkdirSync(data, { recursive: true, mode: 0o700 })
  const fixtures = join(clone, "fixtures", "amplifier")
  const work = join(room.folder, "work")
  for (const folder of [data, work]) {
    cpSync(fixtures, join(folder, "amplifier"), { recursive: true })
    cpSync(join(fixtures, "hooks", "guard.py"), join(folder, "amplifier", "guard.py"))
  }
  writeFileSync(join(work, "README.md"), "read me\n")
  writeFileSync(join(data, "caisson.yaml"), blocksOf("docs/amplifier.md", "yaml").join(""), { mode: 0o600 })
  const said = jsonIn(await type(blocksOf("docs/amplifier.md").join(""), { room: room.folder, cwd: work }))
  expect(said[0]).toMatchObject([{ id: "read-file" }])
  expect(said[1]).toMatchObject({ ok: true, value: { output: expect.stringContaining("read me") } })
  expect(said[2]).toMatchObject({ ok: true, errors: 0 })
  expect(readFileSync(join(work, "imported", "bash", "TOOL.md"), "utf8")).toContain("id: bash")
})

test("docs/mcp-server.md: a client that is set up so has its server started", async () => {
  const [text = ""] = blocksOf("docs/mcp-server.md", "json")
  const { mcpServers } = JSON.parse(text) as { mcpServers: { caisson: { command: string; args: string[] } } }
  expect(mcpServers.caisson.command).toBe("caisson")
  const args = mcpServers.caisson.args.map((arg) => arg.replace("/srv/work", room.folder))
  const request = { jsonrpc: "2.0", id: 1, method: "initialize" }
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "t", version: "1" } }
  const server = execa(process.execPath, [launcher, ...args], { env: { CAISSON_DATA: join(room.folder, "data") } })
  server.stdin.write(`${JSON.stringify({ ...request, params })}\n`)
  for await (const line of server) {
    expect(JSON.parse(line)).toMatchObject({ id: 1, result: { serverInfo: { name: "caisson" } } })
    // What it has heard of ends with it.
    server.stdin.end()
  }
  expect((await server).exitCode).toBe(0)
})

test("docs/http-drivers.md: the whole driver validates strictly, and its service is asked as it says", async () => {
  const folder = join(room.folder, "shown")
  expect(writeShown("docs/http-drivers.md", folder)).toHaveLength(2)
  const authority = createCallAuthority({ names: ["shop.example.com"] })
  const asked: string[] = []
  const shop = createServer(authority.leafFor("shop.example.com"), (request, response) => {
    asked.push(request.url ?? "")
    response.setHeader("content-type", "application/json").end('{"item": {"id": "a b", "price": 3}}')
  })
  const port = await listening(shop)
  const data = mkdtempSync(join(room.folder, "data-"))
  writeFileSync(join(data, "caisson.yaml"), `egress: { services: { shop.example.com: "127.0.0.1:${port}" } }\n`, {
    mode: 0o600,
  })
  writeFileSync(join(room.folder, "ca.pem"), authority.caPem)
  try {
    const said = await type(
      `caisson validate --strict ${folder}
      caisson call item.show --manifests ${folder} -i '{"id": "a b", "currency": "EUR"}'`,
      { room: room.folder, env: { CAISSON_DATA: data, NODE_EXTRA_CA_CERTS: join(room.folder, "ca.pem") } },
    )
    expect(jsonIn(said)).toMatchObject([
      { ok: true, manifests: 2, warnings: 0 },
      { ok: true, value: { id: "a b", price: 3 } },
    ])
    expect(asked).toEqual(["/v1/items/a%20b?currency=EUR"])
  } finally {
    shop.closeAllConnections()
    await new Promise((resolve) => void shop.close(resolve))
  }
})

test("docs/sdk-drivers.md: the whole driver validates strictly, and its function is called", async () => {
  const folder = join(room.folder, "shown")
  expect(writeShown("docs/sdk-drivers.md", folder)).toHaveLength(3)
  const said = await type(
    `caisson validate --strict ${folder}; caisson call text.shout --manifests ${folder} -i '{"text": "ahoy"}'`,
    { room: room.folder },
  )
  expect(jsonIn(said)).toMatchObject([
    { ok: true, manifests: 2, warnings: 0 },
    { ok: true, value: "AHOY" },
  ])
})
