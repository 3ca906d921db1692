import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { createHost, readReceipts, verifyChain } from "../../src/host/index.ts"
import { until } from "../support/sealed.ts"
import { digestOfFolder, fixtureTools, openFolder } from "./host-world.ts"
import { removeFolder } from "../support/remove-folder.ts"

/** Processes whose command line holds the text. */
const running = (text: string): string[] =>
  readdirSync("/proc").filter((name) => {
    if (!/^\d+$/.test(name) || name === String(process.pid)) return false
    try {
      return readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text)
    } catch {
      return false
    }
  })

it("a host killed in the middle of a call leaves the workspace as it was, no process, and a receipt from the next host", async () => {
  const folder = openFolder()
  const workspace = join(folder, "work")
  const data = join(folder, "data")
  mkdirSync(join(workspace, "notes"), { recursive: true })
  try {
    const child = spawn(process.execPath, [join(import.meta.dirname, "host-sleeper.ts"), data, workspace], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    await once(child.stdout, "data")
    const before = digestOfFolder(workspace)
    await until(
      () =>
        readdirSync(join(data, "calls")).some((name) => name.endsWith(".json")) && running("act.pl\0sleep").length > 0,
      "the tool runs",
    )
    const [marker] = readdirSync(join(data, "calls"))
    child.kill("SIGKILL")
    await once(child, "close")
    await until(
      () => running("act.pl\0sleep").length === 0 && running(data).length === 0,
      "nothing of the killed host is alive",
    )
    expect(digestOfFolder(workspace)).toBe(before)

    await using host = await createHost({ data, manifests: [fixtureTools] })
    expect(
      await host.call(
        { tool: "fixture.act", input: { verb: "write", args: ["notes/next.txt", "x"] }, workspace },
        { approved: true },
      ),
    ).toMatchObject({ ok: true })
    const receipts = readReceipts(data).map((event) => event.metadata)
    expect(receipts).toMatchObject([
      { verdict: "ok" },
      { call: marker?.replace(".json", ""), verdict: "internal", crashed: true, details: { commit: "unknown" } },
      { verdict: "ok" },
    ])
    expect(await verifyChain(data)).toMatchObject({ ok: true })
    expect(readdirSync(join(data, "calls"))).toEqual([])
  } finally {
    removeFolder(folder)
  }
})

it("a program that waits for its host to close is still there when it has", async () => {
  const folder = openFolder()
  mkdirSync(join(folder, "work"))
  writeFileSync(join(folder, "work/README.md"), "read me")
  try {
    const script = join(import.meta.dirname, "host-closer.ts")
    const child = spawn(process.execPath, [script, join(folder, "data"), join(folder, "work")], {
      stdio: ["ignore", "pipe", "inherit"],
    })
    let said = ""
    child.stdout.setEncoding("utf8").on("data", (text: string) => (said += text))
    expect(await once(child, "close")).toEqual([0, null])
    expect(said).toBe("closed\n")
  } finally {
    removeFolder(folder)
  }
})

it("closing a host waits for calls under way and refuses calls from then on", async () => {
  const folder = openFolder()
  mkdirSync(join(folder, "work/notes"), { recursive: true })
  try {
    const host = await createHost({ data: join(folder, "data"), manifests: [fixtureTools] })
    // Closed while the call waits for its approval: what is left to do takes no time on any machine.
    const asked = Promise.withResolvers<void>()
    const answer = Promise.withResolvers<boolean>()
    const approve = (): Promise<boolean> => {
      asked.resolve()
      return answer.promise
    }
    const running = host.call(
      { tool: "fixture.act", input: { verb: "write", args: ["notes/a.txt", "x"] }, workspace: join(folder, "work") },
      { approve },
    )
    await Promise.race([asked.promise, running])
    const closing = host.close()
    await expect(host.call({ tool: "fixture.act" })).rejects.toThrow("closed")
    answer.resolve(true)
    const ended = await running
    expect(ended, JSON.stringify(ended)).toMatchObject({ ok: true })
    await closing
    expect(await verifyChain(join(folder, "data"))).toMatchObject({ ok: true, entries: 1 })
  } finally {
    removeFolder(folder)
  }
})
