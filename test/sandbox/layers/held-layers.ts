/** Layers that are held by one process and written by another, as root and as the workspace's owner. */
import { chownSync, existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import type { HeldCommitResult, HeldLayer } from "../../../src/sandbox/layers/held.ts"
import { type LayerReport, OWNER, OWNER_GROUP, Workspace } from "../effects/fixtures/workspaces.ts"
import type { LayerJob } from "../effects/fixtures/layer.ts"

export type Mode = LayerJob["mode"]
const NAME = "01HELD"

export class HeldWorkspace extends Workspace {
  readonly mode: Mode
  readonly at: string
  layerHeld: HeldLayer | undefined
  constructor(before: string, mode: Mode) {
    super(before)
    this.mode = mode
    this.at = join(this.dataDir, "held", NAME)
    for (const folder of [join(this.dataDir, "held"), this.at]) {
      mkdirSync(folder, { mode: 0o700 })
      if (mode === "user" && process.getuid?.() === 0) chownSync(folder, OWNER, OWNER_GROUP)
    }
    // Transactions are those of whoever commits.
    if (mode === "root") chownSync(this.dataDir, 0, 0)
  }
  hold(run: string, bytes = 1 << 24, more: Partial<LayerJob> = {}): LayerReport {
    const report = this.layer({ mode: this.mode, run, hold: { at: this.at, bytes }, ...more })
    if (report.held?.ok === true) this.layerHeld = report.held.layer
    return report
  }
  get description(): string {
    return join(this.at, "layer.json")
  }
  readDescription(): Record<string, unknown> {
    return JSON.parse(readFileSync(this.description, "utf8")) as Record<string, unknown>
  }
  /** `undefined`: killed at that step */
  commit(killAt?: number, digest = this.layerHeld?.digest ?? ""): { result?: HeldCommitResult; steps?: number } {
    const held = { at: this.at, digest, name: NAME }
    const { result, steps } = this.inNamespace("./commit-held.ts", {
      mode: this.mode,
      held,
      dataDir: this.dataDir,
      ...(killAt === undefined ? {} : { killAt }),
    })
    return { ...(result === undefined ? {} : { result }), ...(steps === undefined ? {} : { steps }) }
  }
  /** Does the note say that the commit stands? */
  get stands(): boolean {
    return existsSync(join(this.dataDir, "tx", `finished-${NAME}`))
  }
}

export const heldWith = (before: string, run: string, mode: Mode): HeldWorkspace => {
  const workspace = new HeldWorkspace(before, mode)
  expect(workspace.hold(run).held).toMatchObject({ ok: true })
  return workspace
}
