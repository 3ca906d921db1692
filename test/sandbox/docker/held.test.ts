import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeEach, expect, it } from "vitest"
import type { SandboxBackend } from "../../../src/sandbox/backend.ts"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { prepareFor } from "../../support/sealed.ts"
import { engineSuite } from "./engine-suite.ts"
import { leftovers, openPlace, type Place, profileOf } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
let place: Place
let other: SandboxBackend

engineSuite("a layer held by one backend and written by the other", engine, () => {
  beforeEach(() => {
    place = openPlace(socket)
    other = createNamespaceBackend({ data: join(place.folder, "data") })
    writeFileSync(join(place.workspace, "old"), "old\n")
    return async () => {
      await other[Symbol.asyncDispose]()
      await place[Symbol.asyncDispose]()
      expect(await leftovers(socket, place.folder)).toMatchObject({ mounts: [], containers: 0 })
    }
  })
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  const held = async (backend: SandboxBackend): Promise<{ at: string; digest: string; name: string }> => {
    const at = join(place.folder, "data", "held", "01A")
    mkdirSync(at, { recursive: true, mode: 0o700 })
    const prepared = await prepareFor(backend, profileOf())
    if (!prepared.ok) throw new Error(prepared.message)
    const argv = ["/usr/bin/sh", "-c", "echo new > new; rm old; mkdir made; echo in > made/in"]
    const exited = await prepared.run({ argv, stdin: "", workspace: place.workspace })
    if (!exited.ok) throw new Error(exited.message)
    const answer = await exited.hold({ at, bytes: 1 << 20 })
    if (!answer.ok) throw new Error(answer.message)
    expect(readdirSync(place.workspace)).toEqual(["old"])
    return { at, digest: answer.layer.digest, name: "01A" }
  }

  it.each(["docker", "namespace"] as const)(
    "is what %s held, byte for byte, and a conflict where the base changed",
    async (name) => {
      const [holds, writes] = name === "docker" ? [place.backend, other] : [other, place.backend]
      const first = await held(holds)
      expect(await writes.commitHeld(first)).toEqual({ ok: true })
      expect(readdirSync(place.workspace).sort()).toEqual(["made", "new"])
      expect(readFileSync(join(place.workspace, "made/in"), "utf8")).toBe("in\n")
      rmSync(first.at, { recursive: true })
      rmSync(join(place.workspace, "made"), { recursive: true })
      rmSync(join(place.workspace, "new"))
      writeFileSync(join(place.workspace, "old"), "old\n")
      const second = await held(holds)
      writeFileSync(join(place.workspace, "old"), "other\n")
      expect(await writes.commitHeld(second)).toMatchObject({ ok: false, reason: "conflict", paths: ["old"] })
      expect(existsSync(join(place.workspace, "new"))).toBe(false)
    },
  )
})
