import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { setImmediate as turn } from "node:timers/promises"
import { afterAll, expect, it } from "vitest"
import { createDockerBackend } from "../../../src/sandbox/docker/backend.ts"
import { lookAt } from "../../../src/sandbox/folder.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

const left = (data: string): string[] => {
  const root = join(data, "tx")
  return existsSync(root) ? readdirSync(root).filter((name) => !name.startsWith("lock-")) : []
}

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
      for (let n = 1; n <= 2000; n += 1) writeFileSync(join(changed, String(n)), "old")
      const program = fileURLToPath(new URL("./doomed-committer.ts", import.meta.url))
      const host = spawn(process.execPath, ["--no-warnings", program, socket, data, workspace, where], {
        stdio: ["ignore", "ignore", "inherit"],
      })
      while (host.exitCode === null && !left(data).some((name) => existsSync(join(data, "tx", name, "journal"))))
        await turn()
      host.kill("SIGKILL")
      await once(host, "close")
      expect(left(data)).toHaveLength(1)
      await using backend = createNamespaceBackend({ data })
      await backend.recover(lookAt(changed), new AbortController().signal)
      expect(new Set(readdirSync(changed).map((name) => readFileSync(join(changed, name), "utf8")))).toEqual(
        new Set(["old"]),
      )
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
