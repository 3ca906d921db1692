import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { createHost, readReceipts } from "../../src/host/index.ts"
import type { Envelope, Host } from "../../src/host/types.ts"
import { left, untilBegun, untilCaught } from "../support/mid-commit.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { descendants } from "../support/sealed.ts"
import { digestOfFolder, fixtureTools, openFolder } from "./host-world.ts"

const FILES = 2000

const renew = (workspace: string): void => {
  for (let n = 1; n <= FILES; n += 1) writeFileSync(join(workspace, "notes", String(n)), "old")
}

const openPlace = (): { folder: string; data: string; workspace: string } => {
  const folder = openFolder()
  const [data, workspace] = [join(folder, "data"), join(folder, "work")]
  mkdirSync(join(workspace, "notes"), { recursive: true })
  writeFileSync(join(workspace, "README.md"), "read me\n")
  renew(workspace)
  return { folder, data, workspace }
}
const look = (host: Host, workspace: string) =>
  host.call({ tool: "fixture.act", input: { verb: "read", args: ["README.md"] }, workspace }, { approved: true })
const texts = (workspace: string): string[] => [
  ...new Set(
    readdirSync(join(workspace, "notes")).map((name) =>
      readFileSync(join(workspace, "notes", name), "utf8").slice(0, 3),
    ),
  ),
]

it("a host that stays up finds the workspace whole after another process was killed in mid-commit", async () => {
  const { folder, data, workspace } = openPlace()
  try {
    await using host = await createHost({ data, manifests: [fixtureTools] })
    expect(await look(host, workspace)).toMatchObject({ ok: true })
    const before = digestOfFolder(workspace)
    await untilCaught(async () => {
      renew(workspace)
      const other = spawn(
        process.execPath,
        ["--no-warnings", join(import.meta.dirname, "host-committer.ts"), "namespace", data, workspace],
        { stdio: ["ignore", "pipe", "inherit"] },
      )
      await once(other.stdout, "data")
      await untilBegun(data, () => other.exitCode !== null)
      other.kill("SIGKILL")
      await once(other, "close")
      return left(data).length === 1 && texts(workspace).includes("old")
    })
    expect(await look(host, workspace)).toMatchObject({ ok: true, value: "read me\n" })
    expect(texts(workspace)).toEqual(["old"])
    expect(digestOfFolder(workspace)).toBe(before)
    expect(left(data)).toEqual([])
  } finally {
    removeFolder(folder)
  }
})

it("a launcher that dies in mid-commit leaves an outcome that is unknown, and the next call finds the workspace whole", async () => {
  const { folder, data, workspace } = openPlace()
  try {
    await using host = await createHost({ data, manifests: [fixtureTools] })
    expect(await look(host, workspace)).toMatchObject({ ok: true })
    let envelope: Envelope | undefined
    await untilCaught(async () => {
      renew(workspace)
      expect(await look(host, workspace)).toMatchObject({ ok: true })
      const launchers = descendants(process.pid).filter(({ pid }) =>
        readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("launcher."),
      )
      let over = false
      const committing = host
        .call(
          { tool: "fixture.act", input: { verb: "many", args: ["notes", String(FILES)] }, workspace },
          { approved: true },
        )
        .finally(() => {
          over = true
        })
      await untilBegun(data, () => over)
      for (const { pid } of launchers) process.kill(pid, "SIGKILL")
      envelope = await committing
      return !envelope.ok && texts(workspace).includes("old")
    })
    if (envelope === undefined) throw new Error("no call was made")
    expect(envelope).toMatchObject({ ok: false, error: { code: "internal", details: { commit: "unknown" } } })
    expect(envelope.ok ? "" : envelope.error.message).not.toContain("as before")
    expect(readReceipts(data, { call: envelope.call })[0]?.metadata).toMatchObject({ details: { commit: "unknown" } })
    expect(await look(host, workspace)).toMatchObject({ ok: true })
    expect(texts(workspace)).toEqual(["old"])
    expect(left(data)).toEqual([])
  } finally {
    removeFolder(folder)
  }
})
