/** An engine that does not see the files of this process, as with Docker in Docker: the process's own mounts are private. */
import { execFile } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { afterAll, expect, it } from "vitest"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { leftovers } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const run = promisify(execFile)

engineSuite("an engine in another mount namespace", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it.each([
    ["does not see the data folder's mounts", ":"],
    ["sees another folder in the place of the data folder", 'mount -t tmpfs none "$2"'],
  ])(
    "that %s is refused with just that",
    async (_how, prepare) => {
      const data = mkdtempSync(join(tmpdir(), "caisson-elsewhere-"))
      try {
        const script = `${prepare} && exec "$0" ${join(import.meta.dirname, "elsewhere-host.ts")} "$1" "$2"`
        const apart = ["--mount", "--propagation", "private", "/bin/sh", "-c", script, process.execPath, socket, data]
        const { stdout } = await run("unshare", apart)
        expect(JSON.parse(stdout)).toMatchObject({
          ok: false,
          control: "engine-elsewhere",
          message: expect.stringContaining("does not see the files of this process") as string,
          fix: expect.stringContaining("where the engine runs") as string,
        })
        expect(readdirSync(data, { recursive: true }).filter((name) => String(name).includes("marker"))).toEqual([])
        expect(await leftovers(socket, data)).toMatchObject({ containers: 0 })
      } finally {
        rmSync(data, { recursive: true, force: true })
      }
    },
    120_000,
  )
})
