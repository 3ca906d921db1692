/** A server that is kept between calls, and speaks OAuth itself: its tokens stay out of it, and its home is that of now. */
import { chmodSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { readReceipts } from "../../src/host/index.ts"
import { type Answer, filesIn, openTokenWorld, type TokenWorld } from "./token-cases.ts"

const serve = `
def serve():
    import contextlib, io
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" not in asked:
            continue
        answer = {"jsonrpc": "2.0", "id": asked["id"]}
        method, params = asked["method"], asked.get("params", {})
        if method == "initialize":
            answer["result"] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "keeper", "version": "1.0.0"}}
        elif method == "tools/list":
            answer["result"] = {"tools": [{"name": "do", "inputSchema": {"type": "object"}}]}
        elif method == "tools/call":
            said = io.StringIO()
            with contextlib.redirect_stdout(said):
                code = main(params["arguments"]["verb"], params["arguments"].get("with", ""))
            answer["result"] = {"content": [{"type": "text", "text": said.getvalue()}], "isError": code != 0}
        elif method == "ping":
            answer["result"] = {}
        else:
            answer["error"] = {"code": -32601, "message": "no such method"}
        print(json.dumps(answer), flush=True)
    return 0


`

/** The same program as a server of kind mcp. */
const asServer = (manifests: string): void => {
  const at = (name: string): string => join(manifests, "keeper", name)
  const program = readFileSync(at("keeper.py"), "utf8").replace(
    "sys.exit(main(*sys.argv[1:]))",
    'sys.exit(serve() if sys.argv[1:] == ["serve"] else main(*sys.argv[1:]))',
  )
  writeFileSync(at("keeper.py"), program.replace("def main(", `${serve.trimStart()}def main(`))
  chmodSync(at("keeper.py"), 0o755)
  writeFileSync(
    at("DRIVER.md"),
    `---
name: Keeper
id: keeper
description: The fixture as a server that is kept.
version: 1.0.0
kind: mcp
server: { kind: binary, path: ./keeper.py, args: [serve] }
transport: stdio
connection_options: { keepalive: true }
auth:
  state: { paths: ["~/.keeper/**"] }
  login: { cmd: ./keeper.py login, completes_when: { cmd: ./keeper.py who } }
sandbox:
  network: { egress: ["id.test:443", "other.test:443"], ingress: [] }
  fs: { read: ["**"], write: ["~/.keeper/**"], deny: [] }
  exec: { allow: false }
  env: { pass: [], set: {} }
metadata:
  oauth: { token_endpoints: ["https://id.test/token", "https://id.test/token/revocation"] }
implements:
  - { tool: ./tools/do/TOOL.md, version: ^1.0.0, metadata: { mcp: { tool_name: do } } }
---
`,
  )
}

const keptOf = ({ data }: TokenWorld): unknown =>
  readReceipts(data)
    .flatMap(({ metadata }) => metadata?.["kept_server"] ?? [])
    .at(-1)

it("a kept server calls and refreshes with placeholders, is started anew with a home that changed, and not after a logout", async () => {
  await using world = await openTokenWorld("backend: namespace\n", asServer)
  const { server } = world
  const said: Answer[] = []
  const ask = async (verb: string): Promise<Answer> => {
    const answer = await world.do("alice", verb)
    said.push(answer)
    return answer
  }
  expect(await world.login("alice")).toMatchObject({ ok: true, state: "authed" })
  const alice = { ok: true, value: expect.stringContaining("alice") as string }
  expect(await ask("who")).toMatchObject(alice)
  expect(await ask("who")).toMatchObject(alice)
  expect(keptOf(world)).toMatchObject({ reused: true, kept: true, calls: 2 })
  const held = await ask("state")
  expect(String(held.value)).toMatch(/"access_token": "caisson-access-1-[0-9a-f]{32}"/)
  // It writes down what it was given: it ends with that, and its home is there for the next.
  expect(await ask("refresh")).toMatchObject({ ok: true })
  expect(keptOf(world)).toMatchObject({ reused: true, kept: false })
  expect(await ask("who")).toMatchObject(alice)
  expect(await ask("who")).toMatchObject(alice)
  expect(keptOf(world)).toMatchObject({ reused: true, calls: 2 })

  // The login is ended and done anew while the server waits: what it has in its memory is of the one before.
  expect(await world.logout("alice")).toMatchObject({ ok: true })
  expect(await ask("who")).toMatchObject({ ok: false, error: { code: "auth_required" } })
  expect(await world.login("alice")).toMatchObject({ ok: true, state: "authed" })
  expect(await ask("who")).toMatchObject(alice)
  expect(keptOf(world)).toMatchObject({ reused: false })
  expect(await ask("who")).toMatchObject(alice)

  expect(server.given.length).toBeGreaterThan(4)
  await world.stop()
  const everywhere = [...filesIn(world.folder), JSON.stringify(said)]
  for (const token of server.given) expect(everywhere.filter((text) => text.includes(token))).toEqual([])
}, 300_000)
