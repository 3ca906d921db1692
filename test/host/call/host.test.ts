import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { createHost, HostStartError, readReceipts, verifyChain } from "../../../src/host/index.ts"
import { hostLimits } from "../../../src/host/limits.ts"
import { fakeBackend } from "./fake-backend.ts"

const fixtures = join(import.meta.dirname, "../../../fixtures/tools")
const refuse = {
  ok: false,
  control: "user-namespaces",
  message: "the kernel refuses user namespaces",
  fix: "allow them",
} as const
const version = { stdout: "act 1.2.3" }
let folder: string
let data: string
let workspace: string
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-host-")))
  data = join(folder, "data")
  workspace = join(folder, "work")
  mkdirSync(workspace)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const listed = async (backend: ReturnType<typeof fakeBackend>, tool: string) => {
  await using host = await createHost({ data, manifests: [fixtures], backend })
  return (await host.tools()).find((one) => one.contract.id === tool)?.availability
}

describe("a host", () => {
  it.each([
    ["nothing", null],
    ["text", "fixture.act"],
    ["a list", ["fixture.act"]],
    ["a number", 7],
  ])("that is asked for %s answers that it is no request, with a receipt", async (_what, request) => {
    await using host = await createHost({ data, manifests: [fixtures], backend: fakeBackend(version) })
    const envelope = await host.call(request as never)
    expect(envelope).toMatchObject({ ok: false, error: { code: "input_invalid" } })
    expect(readReceipts(data, { call: envelope.call })).toHaveLength(1)
    expect(await host.why(request as never)).toMatchObject({ error: { code: "input_invalid" } })
  })

  it("reads a request once: one that answers otherwise the second time is the one that it was", async () => {
    let asked = 0
    const request = {
      get tool() {
        asked += 1
        return asked === 1 ? "no.such" : "fixture.act"
      },
      input: {},
      workspace,
    }
    await using host = await createHost({ data, manifests: [fixtures], backend: fakeBackend(version) })
    const envelope = await host.call(request)
    expect(envelope).toMatchObject({ ok: false, error: { code: "not_found" } })
    expect(asked).toBe(1)
  })

  it("starts, lists tools and tells what is wrong where nothing can be sealed", async () => {
    const backend = fakeBackend(...Array.from({ length: 100 }, () => ({ refuse })))
    await using host = await createHost({ data, manifests: [fixtures], backend })
    const actor = (await host.drivers()).find((driver) => driver.contract.id === "actor")
    expect(actor?.availability).toEqual({
      available: false,
      code: "sandbox_unavailable",
      reason: refuse.message,
      fix: refuse.fix,
    })
    const envelope = await host.call({ tool: "fixture.act", input: { verb: "env" }, workspace })
    expect(envelope).toMatchObject({ ok: false, error: { code: "sandbox_unavailable" } })
    expect(readReceipts(data)).toHaveLength(1)
  })

  it("has the bundled catalogue besides the folders it is given", async () => {
    await using host = await createHost({ data, manifests: [fixtures], backend: fakeBackend() })
    const ids = (await host.tools()).map((tool) => tool.contract.id)
    expect(ids).toContain("fixture.act")
    expect(ids.length).toBeGreaterThan(10)
  })

  it("checks a version once, sealed without network, and remembers it on disk until the program changes", async () => {
    const first = fakeBackend(...Array.from({ length: 100 }, () => version))
    expect(await listed(first, "fixture.act")).toMatchObject({ available: true, version: "1.2.3" })
    expect(first.shapes.every((shape) => shape.network === "none")).toBe(true)
    expect(first.settled).not.toContain("committed")
    const second = fakeBackend(...Array.from({ length: 100 }, () => ({ refuse })))
    expect(await listed(second, "fixture.act")).toMatchObject({ available: true, version: "1.2.3" })
  })

  it("keeps receipts of calls made side by side in one chain", async () => {
    const backend = fakeBackend(version, ...Array.from({ length: 30 }, () => ({ stdout: "done" })))
    await using host = await createHost({ data, manifests: [fixtures], backend })
    await host.why({ tool: "fixture.act", workspace })
    const envelopes = await Promise.all(
      Array.from({ length: 20 }, () => host.call({ tool: "fixture.act", input: { verb: "env" }, workspace })),
    )
    expect(new Set(envelopes.map((envelope) => envelope.call)).size).toBe(20)
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 20 })
    expect(backend.log.filter((line) => line.startsWith("recovered"))).toHaveLength(20)
  })

  it("cancels a call by its signal, before and while it runs", async () => {
    const backend = fakeBackend(version, { hang: true })
    await using host = await createHost({ data, manifests: [fixtures], backend })
    await host.why({ tool: "fixture.act", workspace })
    const controller = new AbortController()
    const running = host.call({ tool: "fixture.act", input: { verb: "env" }, workspace }, { signal: controller.signal })
    controller.abort()
    expect(await running).toMatchObject({ error: { code: "cancelled" } })
    const late = await host.call(
      { tool: "fixture.act", input: { verb: "env" }, workspace },
      { signal: AbortSignal.abort() },
    )
    expect(late).toMatchObject({ error: { code: "cancelled" } })
    expect(readReceipts(data)).toHaveLength(2)
  })

  it("runs so many calls at once and no more; the next one starts when one ends", async () => {
    const most = hostLimits.concurrentCalls.value
    const backend = fakeBackend(version, ...Array.from({ length: most + 1 }, () => ({ hang: true })))
    await using host = await createHost({ data, manifests: [fixtures], backend })
    await host.why({ tool: "fixture.act", workspace })
    const stops = Array.from({ length: most + 1 }, () => new AbortController())
    const calls = stops.map(({ signal }) =>
      host.call({ tool: "fixture.act", input: { verb: "env" }, workspace }, { signal }),
    )
    const jobs = (): number => backend.jobs.length - 1
    await vi.waitUntil(() => jobs() === most)
    expect(jobs()).toBe(most)
    stops[0]?.abort()
    await vi.waitUntil(() => jobs() === most + 1)
    for (const stop of stops) stop.abort()
    expect(new Set((await Promise.all(calls)).map((envelope) => (envelope.ok ? "ok" : envelope.error.code)))).toEqual(
      new Set(["cancelled"]),
    )
  })

  it("a call that is cancelled while it waits for a place ends at once, with its receipt, and takes nobody's place", async () => {
    const most = hostLimits.concurrentCalls.value
    const backend = fakeBackend(version, ...Array.from({ length: most + 1 }, () => ({ hang: true })))
    await using host = await createHost({ data, manifests: [fixtures], backend })
    await host.why({ tool: "fixture.act", workspace })
    const request = { tool: "fixture.act", input: { verb: "env" }, workspace }
    const stop = new AbortController()
    const calls = Array.from({ length: most }, () => host.call(request, { signal: stop.signal }))
    const jobs = (): number => backend.jobs.length - 1
    await vi.waitUntil(() => jobs() === most)
    const impatient = new AbortController()
    const waiting = host.call(request, { signal: impatient.signal })
    impatient.abort()
    const envelope = await waiting
    expect(envelope).toMatchObject({ ok: false, error: { code: "cancelled" } })
    expect(readReceipts(data, { call: envelope.call })).toHaveLength(1)
    expect(jobs()).toBe(most)
    const next = host.call(request, { signal: stop.signal })
    expect(jobs()).toBe(most)
    stop.abort()
    await Promise.all([...calls, next])
  })

  it("explains a call that waits for approval, with route and profile", async () => {
    await using host = await createHost({ data, manifests: [fixtures], backend: fakeBackend(version) })
    expect(await host.why({ tool: "fixture.always", workspace })).toMatchObject({
      selected: "actor@1",
      error: { code: "approval_required" },
      profile: { network: "none" },
    })
    expect(await host.why({ tool: "nosuch", workspace })).toMatchObject({ rows: [], error: { code: "not_found" } })
    expect(readReceipts(data)).toEqual([])
  })

  it("does not start with an option that it does not know, nor calls with one", async () => {
    await expect(createHost({ data, manifest: [fixtures] } as never)).rejects.toThrow("did you mean `manifests`?")
    await using host = await createHost({ data, backend: fakeBackend() })
    await expect(host.call({ tool: "json.query", workspace }, { aprove: true } as never)).rejects.toThrow(
      "did you mean `approve`?",
    )
    expect(await host.call({ tool: "json.query", workspace, plann: true } as never)).toMatchObject({
      error: { code: "input_invalid" },
    })
  })

  it("does not start on a config with errors", async () => {
    writeFileSync(join(folder, "caisson.yaml"), "backand: docker\n", { mode: 0o600 })
    await expect(createHost({ data, config: join(folder, "caisson.yaml") })).rejects.toThrow(HostStartError)
  })

  it("does not start on egress that the proxy would not enforce", async () => {
    const config = join(folder, "caisson.yaml")
    writeFileSync(config, "egress: { private: [169.254.0.0/16] }\n", { mode: 0o600 })
    await expect(createHost({ data, config })).rejects.toThrow("169.254.0.0/16")
    writeFileSync(config, 'egress: { services: { db.test: "127.0.0.1:5432" }, private: [10.1.0.0/16] }\n')
    await using host = await createHost({ data, config, backend: fakeBackend() })
    expect(host.data).toBe(data)
  })

  it("goes on without a manifest that does not load, and tells about it", async () => {
    mkdirSync(join(folder, "more/bad"), { recursive: true })
    writeFileSync(join(folder, "more/bad/TOOL.md"), "---\nid: bad\n---\n")
    await using host = await createHost({
      data,
      manifests: [join(folder, "more"), join(folder, "nowhere")],
      backend: fakeBackend(),
    })
    expect(host.diagnostics().filter((one) => one.file.includes("more/bad")).length).toBeGreaterThan(0)
    expect(await host.call({ tool: "bad", workspace })).toMatchObject({ error: { code: "manifest_invalid" } })
  })

  describe("asked for a tool whose manifest or whose driver's manifest did not load", () => {
    const tool = (id: string, more = ""): string =>
      `---\nid: ${id}\nname: A\ndescription: A.\nversion: 1.0.0\ninputs: { type: object }\noutputs: { type: string }\n${more}---\n`
    const write = (name: string, text: string): void => {
      mkdirSync(join(folder, "more/x/y"), { recursive: true })
      writeFileSync(join(folder, "more/x", name), text)
    }

    it.each([
      ["that is no YAML", "---\nid: a.tool\n{[\n---\n"],
      ["in another language", "---js\nid: a.tool\n---\n"],
      ["that lacks fields", "---\nid: a.tool\n---\n"],
    ])("names the file of a tool %s, wherever it lies", async (_what, text) => {
      write("TOOL.md", text)
      await using host = await createHost({ data, manifests: [join(folder, "more")], backend: fakeBackend() })
      expect(await host.call({ tool: "a.tool", workspace })).toMatchObject({
        error: { code: "manifest_invalid", message: expect.stringContaining(join(folder, "more/x/TOOL.md")) },
      })
    })

    it("names both files of two that claim one id", async () => {
      write("TOOL.md", tool("a.tool"))
      write("y/TOOL.md", tool("a.tool", "tags: [other]\n"))
      await using host = await createHost({ data, manifests: [join(folder, "more")], backend: fakeBackend() })
      expect(await host.call({ tool: "a.tool", workspace })).toMatchObject({
        error: { code: "manifest_invalid", message: expect.stringMatching(/x\/TOOL\.md.*x\/y\/TOOL\.md/) },
      })
    })

    it.each([
      ["by path", "./TOOL.md", "egress: ['*']"],
      ["by id", "a.tool", "egress: ['*']"],
      ["in what is no YAML", "./TOOL.md", "egress: [&a '*']"],
    ])("names the driver's file, which names the tool %s, to call and to why", async (_how, ref, egress) => {
      write("TOOL.md", tool("a.tool"))
      write(
        "DRIVER.md",
        `---\nid: a-driver\nname: A\ndescription: A.\nversion: 1.0.0\nkind: cli\nbin: echo\ninstall: [{ method: apt, package: coreutils }]\nnetwork: { ${egress} }\nimplements:\n  - { tool: ${ref}, version: ^1.0.0 }\n---\n`,
      )
      await using host = await createHost({ data, manifests: [join(folder, "more")], backend: fakeBackend() })
      const error = {
        code: "no_route",
        message: expect.stringContaining("more/x/DRIVER.md"),
        details: { reason: "manifest_invalid", route: [] },
      }
      expect(await host.call({ tool: "a.tool", workspace })).toMatchObject({ error })
      expect(await host.call({ tool: "a.tool", workspace, driver: "a-driver" })).toMatchObject({
        error: { ...error, code: "pinned_provider_unavailable" },
      })
      expect(await host.why({ tool: "a.tool", workspace })).toMatchObject({ error })
    })
  })

  it("keeps its receipts verifiable whatever a caller passes", async () => {
    await using host = await createHost({ data, manifests: [fixtures], backend: fakeBackend(version) })
    for (const odd of [{ user: 7 }, { workspace: 7 }, { driver: 7 }, { tool: 7 }, { input: 7n }, { context: 7 }])
      await host.call({ tool: "fixture.act", workspace, input: { verb: "env" }, ...odd } as never)
    expect(await verifyChain(data)).toMatchObject({ ok: true, entries: 6 })
  })
})
