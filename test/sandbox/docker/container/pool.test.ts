import { mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { openEngine } from "../../../../src/sandbox/docker/engine/engine.ts"
import { acquireEngine } from "../../../support/docker-engine.ts"
import { greedy, isSated, modest } from "../../greedy.ts"
import { engineSuite } from "../engine-suite.ts"
import { shapeOf } from "../../../../src/sandbox/profile.ts"
import { containersOf, leftovers, openPlace, profileOf } from "../support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const api = openEngine({ origin: "given", socketPath: socket })
const containers = async (): Promise<string[]> => (await containersOf(socket)) ?? []

engineSuite("containers kept ready", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it("serves a call from a ready container, once, and makes another", async () => {
    await using place = openPlace(socket, { pool: { perProfile: 1 } })
    await place.backend.warm(shapeOf(profileOf()))
    const [ready] = await containers()
    expect(place.backend.readyContainers).toBe(1)
    const first = await place.sh("echo $PPID; echo mine > /tmp/trace; echo mine > trace")
    await first.exited.discard()
    await place.backend.warm(shapeOf(profileOf()))
    const [next] = await containers().then((ids) => ids.filter((id) => id !== ready))
    expect(next).toBeDefined()
    const second = await place.sh("ls -A /tmp /workspace /dev/shm $HOME")
    expect(second.out).toBe("/dev/shm:\n\n/home/tool:\n\n/tmp:\n\n/workspace:\n")
    await second.exited.discard()
  })

  it("gives a ready container the workspace, limits and rights of the call that takes it", async () => {
    await using place = openPlace(socket, { pool: { perProfile: 1 } })
    const other = join(place.folder, "other")
    mkdirSync(other)
    await place.backend.warm(shapeOf(profileOf()))
    const { exited } = await place.run(
      ["/usr/bin/sh", "-c", "echo $WHO > who"],
      { env: { PATH: "/usr/bin", WHO: "second" } },
      { workspace: other },
    )
    expect(exited.writes.effects.map((effect) => effect.path)).toEqual(["who"])
    expect(await exited.commit()).toEqual({ ok: true })
    expect(readdirSync(other)).toEqual(["who"])
    expect(readdirSync(place.workspace)).toEqual([])
  })

  it("gives each container a user of its own, so that one call's inotify instances are not another's", async () => {
    await using place = openPlace(socket)
    const mark = `greedy-docker-${process.pid}`
    const cancel = new AbortController()
    const python = { executables: { program: "/usr/bin/python3", spawn: {} }, limits: { openFiles: 4096 } }
    const taking = place.run(["/usr/bin/python3", "-c", greedy(mark)], python, { cancel: cancel.signal })
    while (!isSated(mark)) await new Promise((resolve) => setTimeout(resolve, 20))
    const { out, err, exited } = await place.run(
      ["/usr/bin/python3", "-c", `import os, pwd; pwd.getpwuid(os.getuid())${modest}`],
      python,
    )
    expect([out, err]).toEqual(["10\n", ""])
    await exited.discard()
    cancel.abort()
    await (await taking).exited.discard()
  })

  it("does not hand out a ready container that died", async () => {
    await using place = openPlace(socket, { pool: { perProfile: 1 } })
    await place.backend.warm(shapeOf(profileOf()))
    for (const id of await containers()) await api.remove(id as never)
    expect((await place.sh("echo alive")).out).toBe("alive\n")
  })

  it("does not serve a profile with other programs or limits from it", async () => {
    await using place = openPlace(socket, { pool: { perProfile: 1 } })
    await place.backend.warm(shapeOf(profileOf()))
    const { out } = await place.sh("ulimit -n; id -u >/dev/null 2>&1 || echo none", {
      limits: { openFiles: 99 },
      executables: { spawn: {} },
    })
    expect(out).toBe("99\nnone\n")
  })

  it("settles two hundred calls at once within its bounds and leaves nothing", async () => {
    const place = openPlace(socket, { pool: { perProfile: 2, live: 12, starting: 3 } })
    let most = 0
    const watch = setInterval(() => void containers().then((ids) => (most = Math.max(most, ids.length))), 200)
    const before = (await leftovers(socket, place.folder)).descriptors
    try {
      const calls = Array.from({ length: 200 }, async (_, index) => {
        const { exited, out } = await place.sh(`echo ${index}; echo ${index} > file-${index}; exit ${index % 3}`)
        const effects = exited.writes.effects.map((effect) => effect.path)
        await exited.discard()
        return { out, ending: exited.ending, effects }
      })
      const settled = await Promise.all(calls)
      settled.forEach((call, index) =>
        expect(call).toEqual({
          out: `${index}\n`,
          ending: { by: "exit", code: index % 3 },
          effects: [`file-${index}`],
        }),
      )
    } finally {
      clearInterval(watch)
      await place[Symbol.asyncDispose]()
    }
    expect(most).toBeGreaterThan(1)
    // One being removed may still be listed while its successor starts.
    expect(most).toBeLessThanOrEqual(12 + 3)
    const after = await leftovers(socket, place.folder)
    expect(after).toMatchObject({ mounts: [], containers: 0 })
    // Connections to the engine are kept for some seconds; a thread that settles layers is kept for good.
    const descriptors = async () => (await leftovers(socket, place.folder)).descriptors
    await expect.poll(descriptors, { timeout: 60_000, interval: 1_000 }).toBeLessThanOrEqual(before + 8)
  }, 300_000)
})
