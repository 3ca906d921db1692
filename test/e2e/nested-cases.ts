/** What a program may ask of other tools and what it may not, the same on each backend. */
import { existsSync, readFileSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "vitest"
import { defineDriver } from "../../src/define/index.ts"
import { hostLimits } from "../../src/host/limits.ts"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { CallEvent } from "../../src/host/events.ts"
import type { Envelope } from "../../src/host/types.ts"
import { callsFolder } from "../../src/data-folder/paths.ts"
import { digestOfFolder, openWorld, type World } from "./host-world.ts"

const folder = join(import.meta.dirname, "../../fixtures/nested")
const manifests = [
  folder,
  defineDriver(
    {
      id: "nest-own",
      name: "Own function",
      description: "d",
      kind: "http",
      network: { egress: [] },
      implements: [{ tool: "nest.again", version: "^1.0.0" }],
      execute: { "nest.again": async () => "in the host's own process" },
    },
    { module: join(folder, "own.ts"), export: "default" },
  ),
]
type Facts = Readonly<Record<string, unknown>>
interface Made {
  readonly tool: string
  readonly call: string
  readonly receipt: string
  readonly verdict: string
}

/** `config`: what the backend needs of it. */
export const nestedSuite = (backend: "namespace" | "docker", config: () => string): void => {
  let world: World
  beforeAll(async () => {
    world = await openWorld(config(), { manifests, backend })
  })
  afterAll(() => world[Symbol.asyncDispose]())

  const factsOf = (call: string): Facts => readReceipts(world.data, { call })[0]?.metadata as Facts
  const madeBy = (call: string): readonly Made[] => (factsOf(call)["calls"] ?? []) as readonly Made[]
  const saidBy = (envelope: Envelope): unknown => (envelope.ok ? envelope.value : envelope.error)

  for (const driver of ["nest-node", "nest-python"]) {
    const ask = (verb: string, more: object = {}, options: object = {}): Promise<Envelope> =>
      world.call("nest.ask", { verb, ...more }, { driver, ...options })
    /** A call whose workspace must stay byte for byte as it was. */
    const undone = async (verb: string, more: object = {}): Promise<Envelope> => {
      const before = digestOfFolder(world.workspace)
      const envelope = await ask(verb, more)
      expect(digestOfFolder(world.workspace)).toBe(before)
      return envelope
    }

    it(`${driver}: is answered by a tool that its contract requires, whose receipt and its own name each other`, async () => {
      const envelope = await ask("write")
      expect(saidBy(envelope)).toBe("written")
      expect(readFileSync(join(world.workspace, "notes/own.txt"), "utf8").trim()).toBe("read me")
      const [made, more] = madeBy(envelope.call)
      expect([made, more]).toMatchObject([{ tool: "nest.count", verdict: "ok" }, undefined])
      const [receipt] = readReceipts(world.data, { call: made?.call ?? "" })
      expect(`sha256:${receipt?.hash}`).toBe(made?.receipt)
      expect(receipt?.metadata).toMatchObject({ parent: envelope.call, depth: 1, user_id: "alice", verdict: "ok" })
    })

    it(`${driver}: what it asks for sees the workspace as it was, not what it wrote itself`, async () => {
      const envelope = await undone("after-write")
      expect(envelope).toMatchObject({ ok: false, error: { code: "undeclared_write" } })
      const [made] = madeBy(envelope.call)
      expect(made).toMatchObject({ tool: "nest.count", verdict: "ok" })
      expect(factsOf(made?.call ?? "")["usage"]).toMatchObject({ stdout_bytes: "read me\n".length })
    })

    it.each([
      ["a tool that its contract does not require", "sdk.none", "policy_violation", "tool_not_required", 0],
      ["a tool that is not there", "nest.hidden", "not_found", "tool_refused", 1],
      ["a tool that changes files", "nest.put", "policy_violation", "tool_changes_files", 1],
      [
        "a tool that a person is asked about, whatever was approved of its own call",
        "nest.always",
        "approval_required",
        "tool_refused",
        1,
      ],
      ["one with effects outside that a person is asked about", "nest.mail", "approval_required", "tool_refused", 1],
    ])(`${driver}: is refused %s, and that is named`, async (_what, tool, code, reason, receipts) => {
      const envelope = await undone("one", {
        tool,
        input: tool === "nest.put" ? { path: "notes/x.txt", text: "x" } : {},
      })
      expect(saidBy(envelope)).toMatchObject({ name: "ToolError", code, retryable: false })
      expect(JSON.stringify(saidBy(envelope))).not.toContain(world.folder)
      expect(envelope.denied).toMatchObject([{ layer: "limit", reason, target: tool, count: 1 }])
      expect(madeBy(envelope.call)).toHaveLength(receipts)
      expect(await world.host.approvals()).toEqual([])
    })

    it(`${driver}: a name that is no tool's of its contract is refused, whatever its form`, async () => {
      expect(saidBy(await undone("odd"))).toEqual(Array.from({ length: 7 }, () => "policy_violation"))
    })

    it(`${driver}: a failure of what it asked for is its to deal with`, async () => {
      const envelope = await undone("one", { input: { path: "gone.txt" } })
      expect(saidBy(envelope)).toMatchObject({ code: "upstream_error", class: "tool" })
      expect(saidBy(await undone("one", { input: { odd: 1 } }))).toMatchObject({
        code: "input_invalid",
        class: "invalid",
      })
    })

    it(`${driver}: calls itself no deeper than ${hostLimits.nestedDepth.value}`, async () => {
      const envelope = await world.call("nest.again", {}, { driver })
      expect(saidBy(envelope)).toEqual(["deeper", ["deeper", ["deeper", ["limit_exceeded"]]]])
      const depths = readReceipts(world.data, {}).flatMap(({ metadata }) => (metadata as Facts)["depth"] ?? [])
      expect(Math.max(...(depths as number[]))).toBe(hostLimits.nestedDepth.value)
    }, 60_000)

    it(`${driver}: is given what it asks for at once one after the other`, async () => {
      const envelope = await undone("together", { times: 4 })
      expect(saidBy(envelope)).toEqual(Array.from({ length: 4 }, () => expect.stringContaining("read me") as string))
      expect(madeBy(envelope.call)).toHaveLength(4)
    }, 60_000)

    it(`${driver}: what is under way when it is done is ended before its receipt is written`, async () => {
      const envelope = await undone("leave", { tool: "nest.wait" })
      expect(saidBy(envelope)).toBe("left")
      expect(madeBy(envelope.call)).toMatchObject([{ tool: "nest.wait", verdict: "cancelled" }])
      expect(readdirSync(callsFolder(world.data))).toEqual([])
    }, 60_000)

    it(`${driver}: a cancel ends what it asked for with it`, async () => {
      const cancel = new AbortController()
      const envelope = await world.host.call(
        { tool: "nest.ask", input: { verb: "wait", tool: "nest.wait" }, workspace: world.workspace, driver },
        {
          caller: processCaller("alice"),
          approved: true,
          signal: cancel.signal,
          onEvent: (event: CallEvent) => {
            if (event.type === "output" && Buffer.from(event.bytes).toString().includes("started"))
              setTimeout(() => cancel.abort(), 1000)
          },
        },
      )
      expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
      expect(madeBy(envelope.call).map(({ verdict }) => verdict)).toEqual(["cancelled"])
    }, 60_000)

    it(`${driver}: a flood of asks ends it, and makes no call`, async () => {
      const envelope = await undone("flood")
      expect(envelope).toMatchObject({ ok: false, error: { code: "limit_exceeded" } })
      expect(madeBy(envelope.call)).toEqual([])
    }, 60_000)

    it(`${driver}: a frame that it makes up itself is none of its call`, async () => {
      const envelope = await undone("forge")
      const message = expect.stringContaining("not of this call") as string
      expect(envelope).toMatchObject({ ok: false, error: { code: "upstream_error", message } })
      expect(madeBy(envelope.call)).toEqual([])
    }, 60_000)

    it(`${driver}: knows its call by one key in argument and environment, the same for the same key of its caller`, async () => {
      const keyed = async (key: string, user = "alice"): Promise<unknown> => {
        const request = { tool: "nest.ask", input: { verb: "key" }, workspace: world.workspace, driver }
        return saidBy(await world.host.call(request, { caller: processCaller(user), approved: true, key }))
      }
      const [one, other, bobs] = [
        await keyed(`k-${driver}`),
        await keyed(`l-${driver}`),
        await keyed(`k-${driver}`, "bob"),
      ]
      const [key, variable] = one as string[]
      expect(key).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
      expect(variable).toBe(key)
      expect(new Set([key, (other as string[])[0], (bobs as string[])[0]]).size).toBe(3)
    })
  }

  it("the number of calls is that of the whole tree", async () => {
    const envelope = await world.call(
      "nest.ask",
      { verb: "many", tool: "nest.far", times: 70 },
      { driver: "nest-node" },
    )
    const said = saidBy(envelope) as readonly { code: string }[]
    expect(said.filter(({ code }) => code === "not_found")).toHaveLength(hostLimits.nestedCalls.value)
    expect(said.filter(({ code }) => code === "limit_exceeded")).toHaveLength(70 - hostLimits.nestedCalls.value)
    expect(madeBy(envelope.call)).toHaveLength(hostLimits.nestedCalls.value)
    expect(existsSync(join(world.workspace, "notes/x.txt"))).toBe(false)
  }, 120_000)

  it("a function of a driver's own asks by what it is handed", async () => {
    const envelope = await world.call("nest.again", {}, { driver: "nest-own" })
    expect(saidBy(envelope)).toEqual([expect.stringMatching(/^[0-9a-f-]{36}$/) as string, "read me\n"])
    expect(madeBy(envelope.call)).toMatchObject([{ tool: "nest.count", verdict: "ok" }])
  }, 60_000)

  it("is run again where it failed, and each of its asks in each attempt is on record", async () => {
    const envelope = await world.call("nest.again", { verb: "fail-after" }, { driver: "nest-node" })
    expect(envelope).toMatchObject({ ok: false, error: { code: "upstream_error", retryable: true } })
    expect(factsOf(envelope.call)).toMatchObject({ attempts: 3 })
    expect(madeBy(envelope.call).map(({ verdict }) => verdict)).toEqual(["ok", "ok", "ok"])
  }, 60_000)

  it("is known by its caller's key, and each call that it asks for by one of its own, the same for the same key", async () => {
    const asked = async (key: string): Promise<readonly string[]> => {
      await using other = await openWorld(config(), { manifests, backend })
      const input = { verb: "many", tool: "nest.key", times: 2 }
      const request = { tool: "nest.again", input, workspace: other.workspace, driver: "nest-node" }
      return saidBy(await other.host.call(request, { caller: processCaller("alice"), key })) as readonly string[]
    }
    const [first, again, other] = [await asked("one"), await asked("one"), await asked("two")]
    expect(again).toEqual(first)
    expect(new Set([...first, ...other]).size).toBe(4)
    for (const key of first) expect(key).toMatch(/^[0-9a-f-]{36}$/)
  }, 60_000)

  it("what it asks for commits nothing that no contract has, also where the operator lets calls of people do so", async () => {
    await using lax = await openWorld(`${config()}undeclared_write: warn\n`, { manifests, backend })
    const said = await lax.call("nest.ask", { verb: "one", tool: "nest.sly" }, { driver: "nest-node" })
    expect(JSON.stringify(saidBy(said))).toContain("undeclared_write")
    expect(existsSync(join(lax.workspace, "sly.txt"))).toBe(false)
  })

  it("a plan's calls are plans", async () => {
    const envelope = await world.call("nest.ask", { verb: "one" }, { driver: "nest-node", plan: true })
    expect(factsOf(madeBy(envelope.call)[0]?.call ?? "")).toMatchObject({ mode: "plan" })
  })
}
