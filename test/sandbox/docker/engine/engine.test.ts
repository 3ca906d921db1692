import { once } from "node:events"
import { mkdtempSync, rmSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { afterEach, describe, expect, it } from "vitest"
import { groupFolders } from "../../../../src/sandbox/docker/container/container-group.ts"
import {
  type ContainerId,
  type Engine,
  openEngine,
  parseContainerId,
} from "../../../../src/sandbox/docker/engine/engine.ts"
import { watchEngine } from "../../../../src/sandbox/docker/engine/engine-watch.ts"
import { imageArchive, layerOf } from "../../../../src/sandbox/docker/images/image-archive.ts"
import { Removals } from "../../../../src/sandbox/docker/engine/removals.ts"
import { engineTrouble } from "../../../../src/sandbox/docker/connected-engine.ts"

const cleanups: (() => void)[] = []
afterEach(() => {
  for (const clean of cleanups.splice(0)) clean()
})
const fakeEngine = async (listener: RequestListener): Promise<Engine & { readonly close: () => void }> => {
  const dir = mkdtempSync(join(tmpdir(), "caisson-fake-"))
  const socketPath = join(dir, "s")
  const server = createServer(listener).listen(socketPath)
  await once(server, "listening")
  const close = (): void => {
    server.closeAllConnections()
    server.close()
  }
  cleanups.push(() => {
    close()
    rmSync(dir, { recursive: true, force: true })
  })
  return { ...openEngine({ origin: "given", socketPath }), close }
}
const id = parseContainerId("abc") as ContainerId
const answering =
  (status: number, body: unknown): RequestListener =>
  (request, response) => {
    request.resume()
    response.writeHead(status, { "content-type": "application/json" })
    response.end(JSON.stringify(body))
  }

describe("the border to the engine", () => {
  it.each(["", "a/b", "../x", "a?b", "-a", ".a", "a b", "a\n", "x".repeat(129)])("refuses %j as an id", (text) => {
    expect(parseContainerId(text)).toBeUndefined()
  })
  it.each(["a", "0123abc", "caisson-1-2-3", "a.b_c"])("takes %j as an id", (text) => {
    expect(parseContainerId(text)).toBe(text)
  })

  it.each([
    [404, "no such container", "not-found"],
    [409, "conflict", "conflict"],
    [500, "boom", "refused"],
    [500, "write /x: no space left on device", "no-space"],
  ])("tells %i %s apart as %s", async (status, message, kind) => {
    const engine = await fakeEngine(answering(status, { message }))
    expect(await engine.inspect(id)).toMatchObject({ ok: false, failure: { kind } })
  })

  it("ends a call to an engine that hangs, and one that is gone", async () => {
    const engine = await fakeEngine(() => undefined)
    expect(await engine.ping(50)).toMatchObject({ ok: false, failure: { kind: "timeout" } })
    const gone = openEngine({ origin: "given", socketPath: "/nonexistent/engine.sock" })
    expect(await gone.ping(2_000)).toMatchObject({ ok: false, failure: { kind: "unreachable" } })
  })

  it("counts a container that is not there as removed, and nothing else", async () => {
    expect(await (await fakeEngine(answering(404, { message: "no" }))).remove(id)).toMatchObject({ ok: true })
    expect(await (await fakeEngine(answering(409, { message: "in progress" }))).remove(id)).toMatchObject({ ok: false })
  })

  it("fails a build whose stream reports an error under a 200, with the builder's last words", async () => {
    const lines = [
      { stream: "Step 1/1 : RUN x" },
      { stream: "\u001b[91mthe cause\u001b[0m" },
      { stream: "Removing intermediate container 1" },
      { error: "returned a non-zero code: 2" },
    ]
    const engine = await fakeEngine((request, response) => {
      request.resume()
      request.on("end", () => response.end(lines.map((line) => JSON.stringify(line)).join("\r\n")))
    })
    const said: string[] = []
    const built = await engine.build(Readable.from([Buffer.alloc(1024)]), { t: "x" }, (line) => said.push(line))
    expect(built).toMatchObject({ ok: false, failure: { message: "returned a non-zero code: 2 (the cause)" } })
    expect(said).toContain("the cause")
  })

  it("refuses an engine that is rootless, old, without limits or without filters", () => {
    const info = {
      product: "docker",
      version: "28",
      api: "1.51",
      cgroup: "2",
      cgroupDriver: "systemd",
      storage: "overlay2",
      rootless: false,
      usernsRemap: false,
      security: ["name=seccomp,profile=builtin"],
      kernel: "6",
      architecture: "x86_64",
      limits: { memory: true, pids: true, cpu: true },
    } as const
    expect(engineTrouble(info)).toBeUndefined()
    expect(engineTrouble({ ...info, rootless: true })?.control).toBe("engine-rootless")
    expect(engineTrouble({ ...info, api: "1.40" })?.control).toBe("engine-version")
    expect(engineTrouble({ ...info, cgroupDriver: "none" })?.control).toBe("engine-limits")
    expect(engineTrouble({ ...info, limits: { ...info.limits, memory: false } })?.control).toBe("engine-limits")
    expect(engineTrouble({ ...info, limits: { ...info.limits, pids: false } })?.control).toBe("engine-limits")
    expect(engineTrouble({ ...info, security: [] })?.control).toBe("engine-seccomp")
  })
})

describe("what must be removed", () => {
  const removing = (answers: readonly ("yes" | "busy" | "gone")[]) => {
    const left = [...answers]
    const engine = {
      remove: async () => {
        const next = left.shift() ?? "yes"
        if (next === "yes") return { ok: true as const, value: undefined }
        return {
          ok: false as const,
          failure: { kind: next === "busy" ? ("conflict" as const) : ("unreachable" as const), message: next },
        }
      },
    }
    return { removals: new Removals(engine as unknown as Engine), left }
  }
  it("is tried again at once when the engine was busy with it", async () => {
    const { removals, left } = removing(["busy", "busy", "yes"])
    await removals.remove(id)
    expect([removals.pending, left.length]).toEqual([0, 0])
  })
  it("is kept in mind while the engine is gone", async () => {
    const { removals } = removing(["gone", "gone", "yes"])
    await removals.remove(id)
    expect(removals.pending).toBe(1)
    await removals.retry()
    expect(removals.pending).toBe(1)
    await removals.retry()
    expect(removals.pending).toBe(0)
  })
})

describe("the watch over an engine", () => {
  it("tells calls in flight when the engine's event stream ends", async () => {
    const opened = Promise.withResolvers<void>()
    const engine = await fakeEngine((request, response) => {
      if (request.url?.includes("/events") === true) {
        response.writeHead(200)
        response.write("{}\n", () => opened.resolve())
      } else response.end("OK")
    })
    let told = 0
    const watch = watchEngine(engine, () => {
      told += 1
    })
    const { lost, end } = watch.during()
    const aborted = once(lost, "abort")
    await opened.promise
    engine.close()
    await aborted
    expect([lost.aborted, told]).toEqual([true, 1])
    end()
    watch.dispose()
  })
})

describe("an image archive", () => {
  it("has the same bytes and id whatever the order its entries come in", async () => {
    const entries = [
      { path: "b", mode: 0o644, content: Buffer.from("b") },
      { path: "a/", mode: 0o755 },
      { path: "c", mode: 0o777, link: "a" },
    ]
    const build = async (list: typeof entries) =>
      imageArchive([await layerOf(list)], { architecture: "amd64", repository: "x/y" })
    const [one, two] = [await build(entries), await build([...entries].reverse())]
    expect(one.id).toMatch(/^sha256:[0-9a-f]{64}$/)
    expect(two).toEqual(one)
  })
})

describe("a container's control groups", () => {
  it("are found on both hierarchies", () => {
    const v1 = groupFolders(
      "9:memory:/docker/abc\n4:cpu,cpuacct:/docker/abc\n0::/docker/abc\n",
      "30 1 0:1 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n31 1 0:2 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
    )
    expect(Object.fromEntries(v1)).toEqual({
      memory: "/sys/fs/cgroup/memory/docker/abc",
      cpu: "/sys/fs/cgroup/cpu/docker/abc",
      cpuacct: "/sys/fs/cgroup/cpu/docker/abc",
    })
    const v2 = groupFolders(
      "0::/system.slice/docker-abc.scope\n",
      "30 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n",
    )
    expect(Object.fromEntries(v2)).toEqual({ "": "/sys/fs/cgroup/system.slice/docker-abc.scope" })
  })
})
