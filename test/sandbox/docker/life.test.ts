import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statfsSync,
  writeFileSync,
} from "node:fs"
import { createServer } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { fileURLToPath } from "node:url"
import Docker from "dockerode"
import { afterAll, expect, it } from "vitest"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { mount, umount } from "../../../src/linux/mounts.ts"
import { acquireEngine, daemonPath, type EngineOrReason, privateEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { leftovers, openPlace, profileOf } from "./support.ts"

/** These tests kill, freeze and starve engines, so they start their own. */
const acquired = await acquireEngine()
const engine: EngineOrReason =
  acquired.ok && daemonPath() === undefined
    ? { ok: false, reason: "there is no dockerd to start an engine of the tests' own with" }
    : acquired

/** The pid of the process whose command line holds the mark, seen from outside. */
const findProcess = (mark: string): number | undefined => {
  for (const name of readdirSync("/proc").filter((entry) => /^\d+$/.test(entry))) {
    try {
      if (readFileSync(`/proc/${name}/cmdline`, "latin1").split("\0").slice(0, 2).join(" ") === `sleep ${mark}`)
        return Number(name)
    } catch {
      // It ended meanwhile.
    }
  }
  return undefined
}
const until = async <T>(look: () => T | undefined | Promise<T | undefined>): Promise<T> => {
  for (;;) {
    const found = await look()
    if (found !== undefined) return found
    await pause(20)
  }
}
let marks = 0
const newMark = (): string => `${700_000 + (process.pid % 1000) * 100 + ++marks}`

engineSuite("a call whose engine fails", engine, () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-life-"))
  const own = privateEngine(join(folder, "e"))
  afterAll(async () => {
    await own.destroy()
    rmSync(folder, { recursive: true, force: true })
    if (acquired.ok) await acquired[Symbol.asyncDispose]()
  })
  const containersOf = async (): Promise<number> => {
    const found = await openEngine({ origin: "given", socketPath: own.socket }).list(["dev.caisson.host"])
    return found.ok ? found.value.length : -1
  }

  it("ends as infrastructure when the engine is killed, commits nothing, and cleans up when it is back", async () => {
    await own.start()
    await using place = openPlace(own.socket)
    const mark = newMark()
    const call = place.sh(`echo x > made; sleep ${mark}`)
    const tool = await until(() => findProcess(mark))
    process.kill(own.pid() as number, "SIGKILL")
    const { exited } = await call
    expect(exited.ending).toMatchObject({ by: "infrastructure", message: expect.stringContaining("engine") as string })
    expect(existsSync(`/proc/${tool}`)).toBe(false)
    await exited.discard()
    expect(readdirSync(place.workspace)).toEqual([])
    await own.start()
    const next = await place.sh("echo again")
    expect(next.out).toBe("again\n")
    await next.exited.discard()
    await until(async () => ((await containersOf()) === 0 ? true : undefined))
  })

  it("is served after `docker image prune -a`, by a host that has been up all the while", async () => {
    if (own.pid() === undefined) await own.start()
    await using place = openPlace(own.socket)
    await (await place.sh("echo before")).exited.discard()
    await until(async () => ((await containersOf()) === 0 ? true : undefined))
    const pruned = await new Docker({ socketPath: own.socket }).pruneImages({ filters: { dangling: ["false"] } })
    expect(pruned.ImagesDeleted?.length).toBeGreaterThan(0)
    const after = await place.sh("echo after")
    expect(after.out).toBe("after\n")
    await after.exited.discard()
  })

  it("has parked containers that end when they are asked to, and the next call is served all the same", async () => {
    if (own.pid() === undefined) await own.start()
    await using place = openPlace(own.socket, { pool: { perProfile: 1 } })
    await place.backend.warm(shapeOf(profileOf()))
    const api = openEngine({ origin: "given", socketPath: own.socket })
    const found = await api.list(["dev.caisson.host"])
    const [parked] = found.ok ? found.value : []
    if (parked === undefined) throw new Error("nothing is parked")
    await new Docker({ socketPath: own.socket }).getContainer(parked.id).kill({ signal: "SIGTERM" })
    await until(async () => {
      const state = await api.inspect(parked.id)
      return state.ok && state.value.running ? undefined : true
    })
    expect((await place.sh("kill -TERM 1; echo served")).out).toBe("served\n")
  })

  it("ends as infrastructure when the engine hangs", async () => {
    if (own.pid() === undefined) await own.start()
    await using place = openPlace(own.socket)
    const mark = newMark()
    const call = place.sh(`sleep ${mark}`)
    await until(() => findProcess(mark))
    const pid = own.pid() as number
    process.kill(pid, "SIGSTOP")
    try {
      const { exited } = await call
      expect(exited.ending).toMatchObject({ by: "infrastructure" })
      expect(findProcess(mark)).toBeUndefined()
      await exited.discard()
    } finally {
      process.kill(pid, "SIGCONT")
    }
  })

  it("is refused while the engine is down", async () => {
    await own.stop()
    await using place = openPlace(own.socket)
    expect(await place.backend.prepare(shapeOf(profileOf()))).toMatchObject({
      ok: false,
      control: "engine-unreachable",
    })
  })

  it("is refused when the engine answers with errors, and leaves no mount", async () => {
    const socket = join(folder, "broken.sock")
    const answers: Readonly<Record<string, unknown>> = {
      "/version": { Version: "99", ApiVersion: "1.41" },
      "/info": {
        SecurityOptions: ["name=seccomp"],
        CgroupDriver: "cgroupfs",
        Architecture: "x86_64",
        MemoryLimit: true,
        PidsLimit: true,
      },
      "/containers/json": [],
    }
    const server = createServer((request, response) => {
      const path = new URL(request.url ?? "/", "http://engine").pathname
      const answer = answers[path]
      response.writeHead(answer === undefined ? 500 : 200, { "content-type": "application/json" })
      response.end(JSON.stringify(answer ?? { message: "write /data: no space left on device" }))
    }).listen(socket)
    await once(server, "listening")
    const place = openPlace(socket)
    expect(await place.backend.prepare(shapeOf(profileOf()))).toMatchObject({ ok: false, control: "engine-no-space" })
    await place[Symbol.asyncDispose]()
    expect((await leftovers(socket, place.folder)).mounts).toEqual([])
    server.close()
  })

  it("is refused when the engine's disk is full, and runs again when it is not", async () => {
    const disk = join(folder, "disk")
    mkdirSync(disk)
    mount("tmpfs", disk, "tmpfs", 0, "size=96m")
    const small = privateEngine(join(disk, "e"))
    try {
      await small.start()
      await using place = openPlace(small.socket)
      const filler = join(disk, "filler")
      const { bavail, bsize } = statfsSync(disk)
      writeFileSync(filler, Buffer.alloc(bavail * bsize - 4096))
      try {
        writeFileSync(join(disk, "filler-2"), Buffer.alloc(1 << 20))
      } catch {
        // Now it is full to the last page.
      }
      expect(await place.backend.prepare(shapeOf(profileOf()))).toMatchObject({ ok: false })
      rmSync(filler)
      rmSync(join(disk, "filler-2"), { force: true })
      expect((await place.sh("echo room")).out).toBe("room\n")
    } finally {
      await small.destroy()
      umount(disk, 2)
    }
  })

  it("outlives no host: the next start finds and removes what a killed one left", async () => {
    await own.start()
    const home = mkdtempSync(join(folder, "host-"))
    const [data, workspace] = [join(home, "data"), join(home, "workspace")]
    mkdirSync(workspace)
    const mark = newMark()
    const host = spawn(
      process.execPath,
      ["--no-warnings", fileURLToPath(new URL("./doomed-host.ts", import.meta.url)), own.socket, data, workspace, mark],
      { stdio: ["ignore", "inherit", "inherit"] },
    )
    const tool = await until(() => findProcess(mark))
    host.kill("SIGKILL")
    await once(host, "exit")
    // The bridge sees its pipes end and takes the container down with nobody's help.
    await until(() => (existsSync(`/proc/${tool}`) ? undefined : true))
    await using place = openPlace(own.socket, { data })
    expect((await place.sh("echo next")).out).toBe("next\n")
    await place.backend[Symbol.asyncDispose]()
    expect(await leftovers(own.socket, home)).toMatchObject({ mounts: [], containers: 0 })
    expect(readdirSync(workspace)).toEqual([])
    expect(readdirSync(join(data, "docker"))).toEqual([])
  })
})
