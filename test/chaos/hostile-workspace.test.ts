import { spawn } from "node:child_process"
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { once } from "node:events"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { commitLayer } from "../../src/sandbox/effects/commit/commit-layer.ts"
import { LayerRefused } from "../../src/sandbox/effects/limits.ts"
import { readWriteSet } from "../../src/sandbox/effects/read.ts"
import { PlainLayers } from "../sandbox/effects/fixtures/plain-layer.ts"

/** Change times out of the picture: what is left is how the commit walks. */
const NEVER = { sinceNs: String(2n ** 62n) }

const flipping = async (workspace: string, victim: string, during: () => Promise<void>): Promise<void> => {
  const flip = `
    import { renameSync, symlinkSync, unlinkSync, writeSync } from "node:fs"
    const [at, aside, victim] = process.argv.slice(1)
    writeSync(1, "ready")
    const pause = new Int32Array(new SharedArrayBuffer(4))
    for (let round = 0; ; round++) {
      renameSync(at, aside); symlinkSync(victim, at)
      if (round % 7 === 0) Atomics.wait(pause, 0, 0, 1)
      unlinkSync(at); renameSync(aside, at)
      if (round % 5 === 0) Atomics.wait(pause, 0, 0, 3)
    }`
  const child = spawn(
    process.execPath,
    ["--input-type=module", "-e", flip, join(workspace, "a"), join(workspace, "aside"), victim],
    { stdio: ["ignore", "pipe", "ignore"] },
  )
  try {
    await once(child.stdout, "data")
    await during()
  } finally {
    child.kill("SIGKILL")
    await once(child, "exit")
  }
}

describe("a workspace whose folders are swapped for symlinks during commits", () => {
  it("never leads a write or a removal to where they point", async () => {
    using layers = new PlainLayers({ "a/old": "old", "a/b/keep": "keep" })
    const victim = join(layers.base, "victim")
    mkdirSync(join(victim, "b"), { recursive: true })
    writeFileSync(join(victim, "old"), "precious")
    let landed = 0
    const ends: Record<string, number> = {}
    await flipping(layers.workspace, victim, async () => {
      for (let round = 0; (landed < 40 || (ends["conflict"] ?? 0) < 40) && round < 5000; round++) {
        const upper = join(layers.base, `upper-${round}`)
        mkdirSync(join(upper, "a/b"), { recursive: true })
        writeFileSync(join(upper, "a/old"), `new ${round}`)
        writeFileSync(join(upper, `a/b/new-${round}`), "new")
        const effects = [
          { kind: "create" as const, path: `a/b/new-${round}` },
          { kind: "modify" as const, path: "a/old" },
        ]
        const result = await commitLayer({
          workspace: layers.workspace,
          upper,
          writeSet: { effects, bytes: 0 },
          txRoot: layers.txRoot,
          since: NEVER,
          xattrPrefix: "user",
        })
        if (result.ok) landed++
        else ends[result.reason] = (ends[result.reason] ?? 0) + 1
      }
    })
    expect(landed).toBeGreaterThanOrEqual(40)
    expect(ends["conflict"] ?? 0).toBeGreaterThanOrEqual(40)
    expect(readFileSync(join(victim, "old"), "utf8")).toBe("precious")
    expect(readdirSync(victim).sort()).toEqual(["b", "old"])
    expect(readdirSync(join(victim, "b"))).toEqual([])
  })

  it("is not read through by the write set either", async () => {
    using layers = new PlainLayers({ "a/old": "old" })
    const victim = join(layers.base, "victim")
    mkdirSync(victim)
    writeFileSync(join(victim, "old"), "precious")
    const upper = join(layers.base, "upper")
    mkdirSync(join(upper, "a"), { recursive: true })
    writeFileSync(join(upper, "a/old"), "new")
    const befores = new Set<string | undefined>()
    await flipping(layers.workspace, victim, async () => {
      for (let round = 0; round < 400; round++) {
        const writes = await readWriteSet({ lower: layers.workspace, upper, xattrPrefix: "user" }).catch(
          (error: unknown) => {
            if (error instanceof LayerRefused && error.code === "unstable") return undefined
            throw error
          },
        )
        for (const effect of writes?.effects ?? []) if (effect.path === "a/old") befores.add(effect.before)
      }
    })
    const precious = await readWriteSet({ lower: victim, upper: join(upper, "a"), xattrPrefix: "user" })
    expect(befores.has(precious.effects[0]?.before)).toBe(false)
    expect(befores.size).toBeGreaterThan(0)
  })
})
