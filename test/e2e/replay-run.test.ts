/** What a command hears from the network, kept and answered again: an `npm install` of `caisson run`, its registry gone. */
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect } from "vitest"
import { createHost, writeSetDigest } from "../../src/host/index.ts"
import { testNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { startPackageRegistry } from "../support/servers/package-registry.ts"

const noNpm = existsSync("/usr/bin/npm")
  ? undefined
  : "there is no npm among the system's programs: `apt-get install npm`"

testNeeding(
  "an npm install is replayed twice to the same tree, with its registry gone, and asks nobody",
  noNpm,
  async () => {
    const folder = mkdtempSync(join(tmpdir(), "caisson-replay-run-"))
    const registry = await startPackageRegistry()
    await registry.publish(
      {
        name: "left",
        version: "1.0.0",
        files: { "index.js": "module.exports = 1\n" },
        manifest: { dependencies: { right: "^2.0.0" } },
      },
      { name: "right", version: "2.1.0", files: { "lib/index.js": "module.exports = 2\n" } },
    )
    const workspace = join(folder, "workspace")
    mkdirSync(workspace)
    writeFileSync(join(workspace, "package.json"), '{ "name": "own", "version": "1.0.0" }\n')
    writeFileSync(join(folder, "caisson.yaml"), registry.config)
    const host = await createHost({ data: join(folder, "data"), config: join(folder, "caisson.yaml") })
    try {
      const tape = join(folder, "install.jsonl")
      const install = (kept: { readonly record?: string; readonly replay?: string }) =>
        host.run(
          {
            command: [
              "npm",
              "install",
              "--no-audit",
              "--no-fund",
              "--no-update-notifier",
              `--registry=http://registry.test:${registry.port}/`,
              "left",
            ],
            workspace,
            allow: [`registry.test:${registry.port}`],
            write: ["node_modules/**", "package.json", "package-lock.json"],
            exec: ["node", "sh"],
            plan: true,
          },
          kept,
        )
      const recorded = await install({ record: tape })
      expect(recorded).toMatchObject({ ok: true, denied: [] })
      expect(recorded.effects.map(({ path }) => path)).toContain("node_modules/right/lib/index.js")
      const asked = registry.asked.length
      await registry[Symbol.asyncDispose]()
      for (const again of [await install({ replay: tape }), await install({ replay: tape })]) {
        expect(again).toMatchObject({ ok: true, notes: [expect.stringMatching(/the network closed$/)] })
        expect(writeSetDigest(again.effects)).toBe(writeSetDigest(recorded.effects))
      }
      expect(registry.asked).toHaveLength(asked)
    } finally {
      await host.close()
      removeFolder(folder)
    }
  },
)
