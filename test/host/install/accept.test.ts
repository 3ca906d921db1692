import { mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { defaultConfig } from "../../../src/host/config/types.ts"
import { createInstalls } from "../../../src/host/install/installs.ts"
import type { Effect } from "../../../src/sandbox/effects/types.ts"
import { removeFolder } from "../../support/remove-folder.ts"

const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-accept-")))
afterAll(() => removeFolder(folder))

/** What is said of a build that wrote this, before any of it is there. */
const saidOf = async (effects: readonly Effect[]): Promise<string | undefined> => {
  let said: string | undefined
  const installs = createInstalls({
    data: folder,
    config: defaultConfig,
    build: (request) => {
      said = request.accept({ effects, bytes: 0 })
      return Promise.resolve({ ok: false, code: "install_failed", message: "enough", details: {} })
    },
    ask: () => Promise.reject(new Error("nothing is fetched")),
    recover: () => Promise.resolve(),
    closing: new AbortController().signal,
  })
  await installs.ensure({ source: "npm", packages: [{ name: "any" }] })
  return said
}

// biome-ignore format: a table reads by rows
it.each<[Effect, RegExp | undefined]>([
  [{ kind: "symlink", path: "node_modules/.bin/a", target: "../a/cli.js" }, undefined],
  [{ kind: "symlink", path: "a/b", target: "../../out" }, /the link a\/b leads out of it/],
  [{ kind: "symlink", path: "a", target: "/etc/passwd" }, /the link a leads out of it/],
  [{ kind: "symlink", path: "a", target: "b/../../out" }, /leads out of it/],
  [{ kind: "special", path: "a" }, /a is no file, folder or link/],
  [{ kind: "create", path: "a", refused: "it is set-user-ID" }, /a: it is set-user-ID/],
  [{ kind: "create", path: "a" }, undefined],
])("of a build that wrote %j: %s", async (effect, expected) => {
  const said = await saidOf([effect])
  if (expected === undefined) expect(said).toBeUndefined()
  else expect(said).toMatch(expected)
})
