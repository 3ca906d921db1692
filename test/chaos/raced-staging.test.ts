import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { describeNeeding, noRoot } from "../support/needing.ts"
import { commitLayer } from "../../src/sandbox/effects/commit/commit-layer.ts"
import { recoverWorkspace } from "../../src/sandbox/effects/commit/recovery/recover.ts"
import { OWNER, OWNER_GROUP } from "../sandbox/effects/fixtures/workspaces.ts"
import { asUser } from "../support/other-user.ts"

const NEVER = { sinceNs: String(2n ** 62n) }
const ROUNDS = 600
const SWAPS = 60

/** Swaps every folder that a commit makes in the workspace for a link to `evil`, and back, as fast as it can. */
const racer = `
  import { mkdirSync, readdirSync, renameSync, symlinkSync, unlinkSync, writeFileSync, writeSync } from "node:fs"
  const [workspace, evil, count] = process.argv.slice(1)
  const list = (dir) => { try { return readdirSync(dir) } catch { return [] } }
  const quietly = (act) => { try { act(); return true } catch { return false } }
  let swaps = 0
  writeSync(1, "ready")
  for (;;) {
    const inside = workspace + "/.caisson-tx"
    const folders = [
      ...list(workspace).filter((name) => name.startsWith(".caisson-tx-")).map((name) => workspace + "/" + name),
      ...list(inside).map((name) => inside + "/" + name),
    ]
    for (const folder of folders) {
      if (folder.endsWith(".aside")) continue
      if (!quietly(() => renameSync(folder, folder + ".aside"))) continue
      quietly(() => symlinkSync(evil, folder))
      for (let spin = 0; spin < 2000; spin++) list(folder)
      quietly(() => unlinkSync(folder))
      quietly(() => renameSync(folder + ".aside", folder))
      if (++swaps % 10 === 0) writeFileSync(count, String(swaps))
    }
  }`

describeNeeding("a workspace of another user's, on another file system than the data folder", noRoot, () => {
  it("gives that user nothing of root's, however the folders of a commit are swapped while it is made", {
    timeout: 300_000,
  }, async () => {
    const base = mkdtempSync(join(tmpdir(), "caisson-raced-"))
    const data = mkdtempSync("/dev/shm/caisson-raced-")
    const [workspace, evil, victim, upper] = ["ws", "evil", "victim", "upper"].map((name) => join(base, name)) as [
      string,
      string,
      string,
      string,
    ]
    try {
      chmodSync(base, 0o755)
      for (const dir of [workspace, evil, victim, upper]) mkdirSync(dir, { mode: 0o755 })
      for (const dir of [workspace, evil]) chownSync(dir, OWNER, OWNER_GROUP)
      mkdirSync(join(workspace, ".caisson-tx"), { mode: 0o777 })
      chownSync(join(workspace, ".caisson-tx"), OWNER, OWNER_GROUP)
      for (const name of ["0", "s0", "1", "s1", "journal", "done.tmp"])
        writeFileSync(join(victim, name), "root's", { mode: 0o600 })
      symlinkSync(victim, join(evil, "slots"))
      for (const name of ["s0", "s1"]) symlinkSync(join(victim, name), join(evil, name))
      const secrets = (): string[] =>
        readdirSync(victim).map((name) => {
          const { uid, gid, mode } = statSync(join(victim, name))
          return `${name} ${uid}:${gid} ${(mode & 0o7777).toString(8)} ${readFileSync(join(victim, name), "utf8")}`
        })
      const was = secrets()
      const count = join(evil, "count")
      const [program, ...words] = asUser({ uid: OWNER, gid: OWNER_GROUP }, [
        ...[process.execPath, "--input-type=module", "-e", racer],
        ...[workspace, evil, count],
      ])
      const attacker = spawn(program, words, { stdio: ["ignore", "pipe", "inherit"] })
      const swaps = (): number => Number(readdirSync(evil).includes("count") ? readFileSync(count, "utf8") : "0")
      const ends: Record<string, number> = {}
      try {
        await once(attacker.stdout, "data")
        for (let round = 0; round < ROUNDS && swaps() < SWAPS; round++) {
          writeFileSync(join(upper, `a${round}`), Buffer.alloc(1 << 20, round))
          writeFileSync(join(upper, `b${round}`), "b")
          const effects = [`a${round}`, `b${round}`].map((path) => ({ kind: "create" as const, path }))
          const result = await commitLayer({
            workspace,
            upper,
            writeSet: { effects, bytes: 0 },
            txRoot: join(data, "tx"),
            since: NEVER,
            xattrPrefix: "user",
          })
          const end = result.ok ? "ok" : result.reason
          ends[end] = (ends[end] ?? 0) + 1
          for (const { path } of effects) rmSync(join(upper, path))
          if (secrets().join() !== was.join()) break
        }
      } finally {
        attacker.kill("SIGKILL")
        await once(attacker, "exit")
      }
      expect(secrets()).toEqual(was)
      expect(ends["ok"] ?? 0, JSON.stringify(ends)).toBeGreaterThan(0)
      expect(swaps()).toBeGreaterThanOrEqual(SWAPS)
      await recoverWorkspace({ workspace, txRoot: join(data, "tx") })
      const kept = readdirSync(workspace).filter((name) => /^[ab]\d/.test(name))
      for (const name of kept) expect(statSync(join(workspace, name)).uid).toBe(OWNER)
      expect(secrets()).toEqual(was)
    } finally {
      rmSync(base, { recursive: true, force: true })
      rmSync(data, { recursive: true, force: true })
    }
  })
})
