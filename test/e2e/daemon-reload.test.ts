import { spawn } from "node:child_process"
import { once } from "node:events"
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openDaemonWorld, type DaemonWorld, type Ask } from "./daemon-world.ts"
import { fixtureTools, openFolder } from "./host-world.ts"

const config = "manifests: [tools]\napprovals: { on_mutate: auto }\n"

const openReloadWorld = async (): Promise<{
  readonly world: DaemonWorld
  readonly tools: string
  readonly write: (text: string) => void
  readonly operator: Ask
  readonly alice: Ask
}> => {
  const folder = openFolder()
  const tools = join(folder, "tools")
  mkdirSync(tools)
  const world = await openDaemonWorld(config.replace("[tools]", `[${tools}]`), { manifests: [] })
  const file = join(world.folder, "caisson.yaml")
  return {
    world,
    tools,
    write: (text) => writeFileSync(file, text.replace("[tools]", `[${tools}]`)),
    operator: await world.as({ agent: false, roles: ["caller", "operator"] }),
    alice: await world.as(),
  }
}
const copyTools = (tools: string): void =>
  cpSync(join(fixtureTools, "actor"), join(tools, "actor"), { recursive: true })

describe("manifests and config, read again while the daemon runs", () => {
  it("serve calls from then on; one under way keeps what it began with; only an operator may ask", async () => {
    const { world, tools, operator, alice } = await openReloadWorld()
    await using _world = world
    const act = (input: object): object => ({ tool: "fixture.act", input, workspace: world.workspace })
    expect((await alice("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))).status).toBe(404)
    copyTools(tools)
    expect(await alice("POST", "/v1/reload")).toMatchObject({ status: 403, body: { code: "unauthorised" } })
    expect((await alice("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))).status).toBe(404)
    expect(await operator("POST", "/v1/reload")).toMatchObject({ status: 200, body: { generation: 2 } })
    expect((await alice("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))).status).toBe(200)

    const begun = await alice("POST", "/v1/calls", act({ verb: "sleep", args: ["notes/s"] }), {
      prefer: "respond-async",
    })
    const id = String(begun.body["call"])
    const events = await fetch(`${world.address}/v1/calls/${id}/events`, { headers: await authorOf(world) })
    await untilTold(events, "event: started")
    rmSync(join(tools, "actor"), { recursive: true })
    expect(await operator("POST", "/v1/reload")).toMatchObject({ status: 200, body: { generation: 3 } })
    expect((await alice("POST", "/v1/calls", act({ verb: "print", args: ["1"] }))).status).toBe(404)
    expect((await alice("GET", `/v1/calls/${id}`)).body["state"]).toBe("running")
    expect((await alice("DELETE", `/v1/calls/${id}`)).status).toBe(202)
    await expect
      .poll(async () => (await alice("GET", `/v1/calls/${id}`)).body, { timeout: 20_000 })
      .toMatchObject({ state: "settled", envelope: { driver: "actor@1", error: { code: "cancelled" } } })
    expect(await verifyChain(world.data)).toMatchObject({ ok: true })
    expect(readFileSync(join(world.data, "audit/audit-log.jsonl"), "utf8").match(/"host\.reloaded"/g)).toHaveLength(2)
    expect(readReceipts(world.data, { call: id })).toHaveLength(1)
  })

  it("are refused as a whole where anything of them is wrong, with what and where, and the old ones go on", async () => {
    const { world, tools, write, operator, alice } = await openReloadWorld()
    await using _world = world
    copyTools(tools)
    expect((await operator("POST", "/v1/reload")).status).toBe(200)
    const print = { tool: "fixture.act", input: { verb: "print", args: ["1"] }, workspace: world.workspace }
    const manifest = join(tools, "actor/tools/act/TOOL.md")
    const good = readFileSync(manifest, "utf8")
    writeFileSync(manifest, good.replace(/^id: .*$/m, "id: 7"))
    expect(await operator("POST", "/v1/reload")).toMatchObject({
      status: 422,
      body: {
        code: "manifest_invalid",
        detail: expect.stringMatching(/^nothing was taken: /),
        errors: expect.arrayContaining([expect.objectContaining({ file: manifest })]),
      },
    })
    expect((await alice("POST", "/v1/calls", print)).status).toBe(200)
    writeFileSync(manifest, good)
    for (const [text, said] of [
      [`${config}limits: { pids: many }\n`, "limits.pids"],
      [`${config}backend: docker\n`, "`backend`"],
      [`${config}vault: { kv: { address: "http://127.0.0.1:1/", token_file: /x } }\n`, "`vault`"],
      [`${config}serve: { socket: false }\n`, "`serve.socket`"],
    ] as const) {
      write(text)
      const refused = await operator("POST", "/v1/reload")
      expect(refused.status, text).toBeGreaterThanOrEqual(400)
      expect(refused.body["detail"], text).toContain(said)
      expect((await alice("POST", "/v1/calls", print)).status).toBe(200)
    }
    write(`${config}serve: { origins: ["https://ops.example"] }\n`)
    const page = { origin: "https://ops.example" }
    expect((await alice("GET", "/v1/tools", undefined, page)).status).toBe(403)
    expect((await operator("POST", "/v1/reload")).status).toBe(200)
    expect((await alice("GET", "/v1/tools", undefined, page)).status).toBe(200)
  })

  it("are read again on SIGHUP, and the daemon goes on", async () => {
    const folder = openFolder()
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "../../bin/caisson.cjs"), "serve", "--listen", "none", "--manifests", fixtureTools],
      { env: { ...process.env, CAISSON_DATA: join(folder, "data") }, stdio: ["ignore", "ignore", "pipe"] },
    )
    try {
      let said = ""
      child.stderr.setEncoding("utf8").on("data", (text: string) => (said += text))
      await expect.poll(() => said, { timeout: 30_000 }).toContain("the daemon listens on")
      child.kill("SIGHUP")
      await expect.poll(() => said, { timeout: 30_000 }).toMatch(/read again: \d+ tools/)
      expect(said).toContain('"msg":"reloaded"')
      const ended = once(child, "exit")
      child.kill("SIGTERM")
      expect(await ended).toEqual([0, null])
    } finally {
      child.kill("SIGKILL")
      removeFolder(folder)
    }
  })
})

const authorOf = async (world: DaemonWorld): Promise<Record<string, string>> => {
  const made = await world.daemon.host.tokens.issue({ user: "alice", workspaces: [world.workspace] })
  if (!made.ok) throw new Error(made.error.message)
  return { authorization: `Bearer ${made.value.token}` }
}
const untilTold = async ({ body }: Response, what: string): Promise<void> => {
  const reader = body?.getReader()
  for (let said = ""; !said.includes(what); ) {
    const piece = await reader?.read()
    if (piece === undefined || piece.done) throw new Error(`the stream ended before ${what}`)
    said += Buffer.from(piece.value).toString("utf8")
  }
  await reader?.cancel()
}
