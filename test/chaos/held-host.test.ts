import { spawnSync } from "node:child_process"
import { existsSync, mkdirSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { createHost, readReceipts, verifyChain } from "../../src/host/index.ts"
import type { Host } from "../../src/host/index.ts"
import { fixtureTools, openFolder } from "../e2e/host-world.ts"
import { removeFolder } from "../support/remove-folder.ts"

/** An emulated machine, where each kill takes a minute, shows a sample of them. */
const sample = Number(process.env["CAISSON_TEST_PATIENCE"] ?? 1) > 1 ? 5 : 1

class Place implements Disposable {
  readonly folder = openFolder()
  readonly data = join(this.folder, "data")
  readonly workspace = join(this.folder, "work")
  constructor() {
    mkdirSync(join(this.workspace, "notes"), { recursive: true })
  }
  /** How many steps there were; undefined where it was killed. */
  run(more: object): number | undefined {
    const job = JSON.stringify({ data: this.data, workspace: this.workspace, ...more })
    const done = spawnSync(process.execPath, [join(import.meta.dirname, "fixtures/held-host.ts"), job], {
      encoding: "utf8",
    })
    if (done.signal === "SIGKILL") return undefined
    if (done.status !== 0) throw new Error(done.stderr)
    return (JSON.parse(done.stdout) as { steps: number }).steps
  }
  open(): Promise<Host> {
    return createHost({ data: this.data, manifests: [fixtureTools] })
  }
  get note(): string | undefined {
    const file = join(this.workspace, "notes/new.txt")
    return existsSync(file) ? readFileSync(file, "utf8") : undefined
  }
  /** Calls on disk, and what is left of commits. */
  get remains(): string[] {
    return ["held", "tx"].flatMap((name) => {
      const folder = join(this.data, name)
      return existsSync(folder) ? readdirSync(folder) : []
    })
  }
  [Symbol.dispose](): void {
    removeFolder(this.folder)
  }
}

it("a host killed at any step of holding a call leaves it held whole or not at all, with one receipt", {
  timeout: 1_800_000,
}, async () => {
  using whole = new Place()
  const steps = whole.run({}) ?? 0
  expect(steps).toBeGreaterThanOrEqual(8)
  const seen = { held: 0, gone: 0 }
  for (let killAt = 0; killAt < steps; killAt += sample) {
    using place = new Place()
    expect(place.run({ killAt }), `step ${killAt}`).toBeUndefined()
    await using host = await place.open()
    const held = await host.approvals()
    // The first call of a host closes what dead ones left open.
    await host.call({ tool: "fixture.act", input: { verb: "read", args: ["notes"] }, workspace: place.workspace })
    const calls = readReceipts(place.data).filter(({ action }) => action === "tool.invoked")
    expect(new Set(calls.map(({ metadata }) => metadata?.["call"])).size, `step ${killAt}`).toBe(2)
    expect(calls, `step ${killAt}`).toHaveLength(2)
    expect(place.note).toBeUndefined()
    seen[held.length === 1 ? "held" : "gone"] += 1
    const [one] = held
    if (one !== undefined) {
      expect(calls.find(({ metadata }) => metadata?.["call"] === one.id)?.metadata).toMatchObject({
        verdict: "approval_required",
        held: { id: one.id },
      })
      expect(await host.decide(one.id, "approve"), `step ${killAt}`).toMatchObject({ ok: true })
      expect(place.note).toBe("x")
    }
    expect(place.remains, `step ${killAt}`).toEqual([])
    expect(await verifyChain(place.data)).toMatchObject({ ok: true })
  }
  expect(seen.held).toBeGreaterThan(0)
  expect(seen.gone).toBeGreaterThan(0)
})

it.each(["approve", "deny"] as const)(
  "a host killed at any step of a decision to %s leaves it made or not made, with one receipt each",
  {
    timeout: 1_800_000,
  },
  async (answer) => {
    const holding = async (place: Place): Promise<string> => {
      place.run({})
      await using host = await place.open()
      const [held] = await host.approvals()
      if (held === undefined) throw new Error("nothing was held")
      return held.id
    }
    using whole = new Place()
    const steps = whole.run({ decide: { id: await holding(whole), answer } }) ?? 0
    expect(steps).toBeGreaterThanOrEqual(6)
    const seen = { made: 0, open: 0 }
    for (let killAt = 0; killAt < steps; killAt += sample) {
      using place = new Place()
      const id = await holding(place)
      expect(place.run({ decide: { id, answer }, killAt }), `step ${killAt}`).toBeUndefined()
      await using host = await place.open()
      const isOpen = (await host.approvals()).length === 1
      seen[isOpen ? "open" : "made"] += 1
      const decisions = (): (readonly [unknown, unknown])[] =>
        readReceipts(place.data, { call: id })
          .slice(1)
          .map(({ metadata = {} }) => [metadata["verdict"], (metadata["decision"] as { number: number }).number])
      if (isOpen) {
        expect(place.note, `step ${killAt}`).toBeUndefined()
        // A claim that was taken back has its receipt; one that was never made has none.
        for (const [verdict] of decisions()) expect(verdict, `step ${killAt}`).toBe("internal")
        expect(await host.decide(id, answer), `step ${killAt}`).toMatchObject({ ok: answer === "approve" })
      }
      expect(place.note, `step ${killAt}`).toBe(answer === "approve" ? "x" : undefined)
      const numbers = decisions().map(([, number]) => number)
      expect(numbers, `step ${killAt}`).toEqual(numbers.map((_, index) => index + 1))
      expect(decisions().at(-1)?.[0]).toBe(answer === "approve" ? "ok" : "approval_denied")
      expect(place.remains, `step ${killAt}`).toEqual([])
      expect(await verifyChain(place.data)).toMatchObject({ ok: true })
    }
    expect(seen.made).toBeGreaterThan(0)
    expect(seen.open).toBeGreaterThan(0)
  },
)
