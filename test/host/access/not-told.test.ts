import { chmodSync, mkdirSync, mkdtempSync, realpathSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { type Caller, createHost, type Host, processCaller, readReceipts } from "../../../src/host/index.ts"
import { removeFolder } from "../../support/remove-folder.ts"
import { fakeBackend } from "../call/fake-backend.ts"

let folder: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-told-")))
  for (const name of ["work/ana", "tools"]) mkdirSync(join(folder, name), { recursive: true })
  put("caisson.yaml", "manifests: [./tools]\n")
  put("tools/open/TOOL.md", tool("open.read"))
  put("tools/open/DRIVER.md", driver("opener", "open.read"))
  put("tools/policy/POLICY.md", grants("open.read"))
})
afterEach(() => removeFolder(folder))

const put = (name: string, text: string): void => {
  mkdirSync(join(folder, name, ".."), { recursive: true })
  writeFileSync(join(folder, name), text, { mode: 0o600 })
}
const tool = (id: string, version = "1.0.0"): string =>
  `---\nname: T\nid: ${id}\ndescription: A tool.\nversion: ${version}\ninputs: { type: object, properties: { q: { type: string } }, additionalProperties: false }\noutputs: { type: string }\n---\n`
const driver = (id: string, ...tools: readonly string[]): string =>
  `---\nname: D\nid: ${id}\ndescription: A driver.\nversion: 1.0.0\nkind: cli\nbin: "true"\nversion_check: { cmd: 'true --version', parse: '([0-9.]+)', range: '>=1' }\ninstall: [{ method: apt, package: coreutils }]\n` +
  "sandbox: { network: { egress: [] }, fs: { read: [], write: [], deny: [] }, exec: { allow: false }, env: { pass: [], set: {} } }\n" +
  `implements:\n${tools.map((one) => `  - { tool: ${one}, version: ">=1.0.0", metadata: { cli: { argv: [] } } }\n`).join("")}---\n`
const grants = (...actions: readonly string[]): string =>
  `---\nschema: policy/v1\nid: "@acme/team"\ndefault: deny\ngrants: [{ id: ours, principal: "user://ana", actions: [${actions.map((action) => `{ action: "${action}" }`).join(", ")}] }]\n---\n`

const ana = (): Caller => ({
  user: "ana",
  actor: "ana",
  how: "token",
  workspaces: [join(folder, "work/ana")],
  roles: ["caller"],
  mayApprove: false,
})
const open = (): Promise<Host> =>
  createHost({
    data: join(folder, "data"),
    config: join(folder, "caisson.yaml"),
    backend: fakeBackend(...Array.from({ length: 100 }, () => ({ stdout: "1.2.3" }))),
  })
/** Every byte of an answer, but for the ids that no two answers share. */
const bytes = (answer: unknown): string =>
  JSON.stringify(answer, (key, value: unknown) => (["call", "receipt"].includes(key) ? "ID" : value))

const asked = async (host: Host): Promise<readonly string[]> => {
  const workspace = join(folder, "work/ana")
  const caller = ana()
  const answers: unknown[] = []
  for (const name of ["shut.write", "shut.write@1", "shut.write@2", "shut.writ", "open.read@2", "open.read"])
    for (const request of [
      { tool: name, workspace },
      { tool: name, workspace, input: { nonsense: true } },
      { tool: name, workspace, driver: "shutter" },
      { tool: name, workspace: join(folder, "work/bob") },
    ])
      answers.push(await host.call(request, { caller }), await host.why(request, { caller }))
  answers.push(await host.tools({ caller }), await host.drivers({ caller }))
  answers.push(host.diagnostics({ caller }), host.unloaded({ caller }))
  return answers.map(bytes)
}

describe("a caller who may not use a tool", () => {
  it.each<[string, () => void]>([
    [
      "is there",
      () => {
        put("tools/shut/TOOL.md", tool("shut.write"))
        put("tools/shut/DRIVER.md", driver("shutter", "shut.write"))
      },
    ],
    [
      "shares its driver with one that may be used",
      () => {
        put("tools/shut/TOOL.md", tool("shut.write"))
        put("tools/open/DRIVER.md", driver("opener", "open.read", "shut.write"))
      },
    ],
    [
      "is a later major of one that may be used",
      () => {
        put("tools/policy/POLICY.md", grants("open.read@1"))
        put("tools/later/TOOL.md", tool("open.read", "2.0.0"))
      },
    ],
    ["did not load", () => put("tools/shut.write/TOOL.md", "---\nid: shut.write\n---\n")],
    [
      "is denied to everybody by a rule",
      () => {
        put("tools/shut/TOOL.md", tool("shut.write"))
        put("tools/policy/POLICY.md", grants("open.read", "shut.write"))
        put(
          "tools/rule/POLICY.md",
          "---\nschema: agentgovernance/v1\ndoctype: policy\nslug: never\nversion: 1.0.0\nmatch: { action: shut.* }\ndecision: deny\n---\n",
        )
      },
    ],
  ])("is told what it is told where there is none, byte by byte: the tool %s", async (_, change) => {
    const before = await (async () => {
      await using host = await open()
      return await asked(host)
    })()
    change()
    await using host = await open()
    expect(await asked(host)).toEqual(before)
    expect(before.join()).toContain("open.read")
  })

  it("has its refusal in the receipt with the reason, which its operator is told", async () => {
    put("tools/shut/TOOL.md", tool("shut.write"))
    await using host = await open()
    const workspace = join(folder, "work/ana")
    const envelope = await host.call({ tool: "shut.write", workspace }, { caller: ana() })
    expect(envelope).toMatchObject({ ok: false, error: { code: "not_found" } })
    expect(readReceipts(host.data)[0]).toMatchObject({
      actor: { id: "ana" },
      metadata: {
        caller: { how: "token" },
        not_told: { access: { decision: "deny", reason: "no-grant", policy: "@acme/team", principal: "user://ana" } },
      },
    })
    expect(await host.call({ tool: "shut.write", workspace })).toMatchObject({
      error: { code: "unauthorised", message: expect.stringContaining("@acme/team") },
    })
    expect((await host.tools()).map(({ contract }) => contract.id)).toContain("shut.write")
  })

  it("has its grant in the receipt of a call that is let through", async () => {
    await using host = await open()
    await host.call({ tool: "open.read", workspace: join(folder, "work/ana") }, { caller: ana() })
    expect(readReceipts(host.data)[0]?.metadata).toMatchObject({
      user_id: "ana",
      access: { decision: "allow", reason: "matched-grant", grant: "ours", chain: ["@acme/team"] },
    })
  })
})

describe("a caller who may not use a folder", () => {
  it.each<[string, string, () => void]>([
    ["a folder of another", "work/bob", () => mkdirSync(join(folder, "work/bob"))],
    ["a file of another", "work/bob", () => put("work/bob", "")],
    [
      "a link of another to its own folder",
      "work/bob",
      () => symlinkSync(join(folder, "work/ana"), join(folder, "work/bob")),
    ],
    [
      "a closed folder of another",
      "work/bob",
      () => {
        mkdirSync(join(folder, "work/bob"))
        chmodSync(join(folder, "work/bob"), 0)
      },
    ],
    ["the host's data folder", "data", () => undefined],
    ["what holds it", "", () => undefined],
    [
      "a link of its own to a folder of another",
      "work/ana/out",
      () => {
        mkdirSync(join(folder, "work/bob"))
        symlinkSync(join(folder, "work/bob"), join(folder, "work/ana/out"))
      },
    ],
    [
      "a link of its own to what holds the data",
      "work/ana/out",
      () => symlinkSync(folder, join(folder, "work/ana/out")),
    ],
    ["a file of its own", "work/ana/file", () => put("work/ana/file", "")],
    ["a name that leads out of its own", "work/ana/../bob", () => mkdirSync(join(folder, "work/bob"))],
  ])("is told of %s what it is told of one that is not there", async (_, name, make) => {
    await using host = await open()
    const caller = ana()
    const workspace = `${folder}/${name}`
    const answers = async (where: string): Promise<readonly string[]> => [
      bytes(await host.call({ tool: "open.read", workspace: where }, { caller })),
      bytes(await host.why({ tool: "open.read", workspace: where }, { caller })),
    ]
    const nowhere = join(folder, "nowhere")
    const expected = (await answers(nowhere)).map((text) => text.replaceAll(nowhere, resolve(workspace)))
    make()
    expect(await answers(workspace)).toEqual(expected)
  })

  it("may use its own and those below", async () => {
    mkdirSync(join(folder, "work/ana/deep"))
    await using host = await open()
    for (const name of ["work/ana", "work/ana/deep"])
      expect(await host.call({ tool: "open.read", workspace: join(folder, name) }, { caller: ana() })).toMatchObject({
        ok: true,
      })
  })

  it("is bound by the operator's own roots as well, without a word about them", async () => {
    put("caisson.yaml", `manifests: [./tools]\nworkspaces: [${join(folder, "work/bob")}]\n`)
    await using host = await open()
    const request = { tool: "open.read", workspace: join(folder, "work/ana") }
    expect(await host.call(request, { caller: ana() })).toMatchObject({ error: { code: "not_found" } })
    expect(await host.call(request)).toMatchObject({ error: { code: "unauthorised" } })
  })
})

describe("the caller", () => {
  it("that is not the operator is not shown where the host keeps things", async () => {
    put("tools/open/DRIVER.md", driver("opener", "open.read").replace("write: []", 'write: ["~/.opener/**"]'))
    await using host = await open()
    const operator: Caller = { ...ana(), roles: ["caller", "operator"] }
    const request = { tool: "open.read", workspace: join(folder, "work/ana") }
    expect(JSON.stringify((await host.why(request, { caller: ana() })).profile)).not.toContain(host.data)
    expect(JSON.stringify((await host.why(request, { caller: operator })).profile)).toContain(host.data)
  })

  it("is an argument, never a part of what is asked, and a wrong one is the program's mistake", async () => {
    await using host = await open()
    const request = { tool: "open.read", workspace: join(folder, "work/ana") }
    await expect(host.call(request, { caller: { ...processCaller(), roles: ["root"] } as never })).rejects.toThrow(
      /caller.roles/,
    )
    await expect(host.tools({ caller: { user: "ana" } as never })).rejects.toThrow(/caller/)
    for (const wrong of [{ approved: "no" }, { signal: {} }, { unreadable: 1 }, { approve: true }, { caler: 1 }])
      await expect(host.call(request, wrong as never)).rejects.toThrow(/the options of call/)
    expect(await host.call({ ...request, user: "ana" } as never)).toMatchObject({ error: { code: "input_invalid" } })
    expect(await host.call(request, { caller: { ...ana(), user: "bob" } })).toMatchObject({
      error: { code: "unauthorised" },
    })
    expect(await host.call(request, { caller: { ...ana(), roles: ["approver"] } })).toMatchObject({
      error: { code: "unauthorised", message: "this caller may not make calls" },
    })
  })

  it("that a program changes after it asked is the one that it was", async () => {
    await using host = await open()
    const caller = { ...ana(), roles: ["caller"] as Caller["roles"][number][], workspaces: [join(folder, "work/ana")] }
    const asked = host.call({ tool: "open.read", workspace: folder }, { caller })
    caller.workspaces[0] = folder
    caller.roles.push("operator")
    expect(await asked).toMatchObject({ error: { code: "not_found" } })
  })
})
