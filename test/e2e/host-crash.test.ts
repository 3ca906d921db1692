import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { expect, it } from "vitest"
import { createHost, readReceipts, verifyChain } from "../../src/host/index.ts"
import { digestOfFolder, fixtureTools, openFolder } from "./host-world.ts"

const until = async (what: () => boolean): Promise<void> => {
  for (let tries = 0; tries < 4_000; tries += 1) {
    if (what()) return
    await pause(25)
  }
  throw new Error("the condition never held")
}

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
    )
    const [marker] = readdirSync(join(data, "calls"))
    child.kill("SIGKILL")
    await once(child, "close")
    await until(() => running("act.pl\0sleep").length === 0 && running(data).length === 0)
    expect(digestOfFolder(workspace)).toBe(before)

    await using host = await createHost({ data, manifests: [fixtureTools] })
    expect(
      await host.call({
        tool: "fixture.act",
        input: { verb: "write", args: ["notes/next.txt", "x"] },
        workspace,
        approve: true,
      }),
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
    rmSync(folder, { recursive: true, force: true })
  }
})

it("closing a host waits for calls under way and refuses calls from then on", async () => {
  const folder = openFolder()
  mkdirSync(join(folder, "work/notes"), { recursive: true })
  try {
    const host = await createHost({ data: join(folder, "data"), manifests: [fixtureTools] })
    const running = host.call({
      tool: "fixture.act",
      input: { verb: "write", args: ["notes/a.txt", "x"] },
      workspace: join(folder, "work"),
      approve: true,
    })
    const closing = host.close()
    await expect(host.call({ tool: "fixture.act" })).rejects.toThrow("closed")
    expect(await running).toMatchObject({ ok: true })
    await closing
    expect(await verifyChain(join(folder, "data"))).toMatchObject({ ok: true, entries: 1 })
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
