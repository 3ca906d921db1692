import { spawn } from "node:child_process"
import { once } from "node:events"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, expect, it } from "vitest"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { lookAt } from "../../../src/sandbox/folder.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { left, untilBegun, untilCaught } from "../../support/mid-commit.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

const contents = (folder: string): Set<string> =>
  new Set(readdirSync(folder).map((name) => readFileSync(join(folder, name), "utf8")))

engineSuite("a commit that was killed under the docker backend", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })
  it.each(["workspace", "home"])("is undone by the namespace backend: of the %s", async (where) => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-docker-recovery-")))
    const [data, workspace] = [join(folder, "data"), join(folder, "workspace")]
    const home = `${data}-home`
    const changed = where === "home" ? home : workspace
    try {
      for (const each of [data, workspace, home]) mkdirSync(each)
      const program = fileURLToPath(new URL("./doomed-committer.ts", import.meta.url))
      await untilCaught(async () => {
        for (let n = 1; n <= 2000; n += 1) writeFileSync(join(changed, String(n)), "old")
        const host = spawn(process.execPath, ["--no-warnings", program, socket, data, workspace, where], {
          stdio: ["ignore", "ignore", "inherit"],
        })
        await untilBegun(data, () => host.exitCode !== null)
        host.kill("SIGKILL")
        await once(host, "close")
        return left(data).length === 1 && contents(changed).has("old")
      })
      await using backend = createNamespaceBackend({ data })
      await backend.recover(lookAt(changed), new AbortController().signal)
      expect(contents(changed)).toEqual(new Set(["old"]))
      expect(left(data)).toEqual([])
    } finally {
      // The next host of the data folder clears the mounts that the dead one left.
      {
        await using next = createDockerBackend({ data, engine: `unix://${socket}`, rootfs: "host" })
        await next.start()
      }
      rmSync(folder, { recursive: true, force: true })
    }
  })
})
