/** Layers of calls on disk: what dead hosts leave, and disks that cannot hold any. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, describe, expect, test } from "vitest"
import { noRoot, testNeeding } from "../support/needing.ts"
import { openLayerStore, sweepLayers } from "../../src/sandbox/layers/store.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { MNT_DETACH, mount, umount } from "../../src/linux/mounts.ts"
import { removeFolder, runShell, temporaryFolder, until } from "../support/sealed.ts"

let folder: string
beforeEach(() => {
  folder = temporaryFolder("layers")
  mkdirSync(join(folder, "data"))
  mkdirSync(join(folder, "workspace"))
})
afterEach(() => removeFolder(folder))

test("what a killed host's calls had written is gone when the next host of the data folder starts", async () => {
  const [data, workspace] = [join(folder, "data"), join(folder, "workspace")]
  const program = fileURLToPath(new URL("./namespace/fixtures/host-with-calls.ts", import.meta.url))
  const host = spawn(process.execPath, ["--no-warnings", program, data, workspace], {
    stdio: ["ignore", "pipe", "inherit"],
  })
  await once(host.stdout, "data")
  const [dead] = readdirSync(join(data, "layers"))
  expect(readdirSync(join(data, "layers", dead as string)).length).toBeGreaterThan(0)
  host.kill("SIGKILL")
  await once(host, "exit")
  await using next = createNamespaceBackend({ data })
  await next.start()
  await until(() => !existsSync(join(data, "layers", dead as string)), "the dead host's layers are gone")
  const { exited, stdout } = await runShell(next, workspace, "echo well > made; cat made")
  expect(stdout).toBe("well\n")
  expect(await exited.commit()).toEqual({ ok: true })
})

describe("a sweep", () => {
  test("takes whatever it finds, follows no link, and leaves live hosts alone", async () => {
    const layers = join(folder, "data/layers")
    const live = openLayerStore(join(folder, "data"))
    const place = live.place.kind === "disk" ? live.place.folder : ""
    writeFileSync(join(place, "mine"), "x")
    mkdirSync(join(folder, "outside"))
    writeFileSync(join(folder, "outside/kept"), "x")
    writeFileSync(join(layers, "a-file"), "x")
    symlinkSync(join(folder, "outside"), join(layers, "a-link"))
    let deep = join(layers, "dead")
    mkdirSync(deep)
    symlinkSync(join(folder, "outside"), join(deep, "link"))
    for (let depth = 0; depth < 100; depth += 1) mkdirSync((deep = join(deep, "down")))
    chmodSync(deep, 0)
    await sweepLayers(layers)
    expect(existsSync(join(layers, "dead"))).toBe(false)
    expect(readFileSync(join(folder, "outside/kept"), "utf8")).toBe("x")
    expect(readFileSync(join(place, "mine"), "utf8")).toBe("x")
    await live.dispose()
    expect(existsSync(place)).toBe(false)
  })
  testNeeding("crosses no mount", noRoot, async () => {
    const point = join(folder, "data/layers/dead/mounted")
    mkdirSync(point, { recursive: true })
    mount("tmpfs", point, "tmpfs", 0, null)
    try {
      writeFileSync(join(point, "kept"), "x")
      await sweepLayers(join(folder, "data/layers"))
      expect(readFileSync(join(point, "kept"), "utf8")).toBe("x")
    } finally {
      umount(point, MNT_DETACH)
    }
  })
})

testNeeding(
  "a data folder on a disk that holds no layers serves calls from memory, within their limit of it, and doctor says so",
  noRoot,
  async () => {
    const [lower, upper, work, data] = ["lower", "upper", "work", "on-overlay"].map((name) => join(folder, name)) as [
      string,
      string,
      string,
      string,
    ]
    for (const each of [lower, upper, work, data]) mkdirSync(each)
    mount("overlay", data, "overlay", 0, `lowerdir=${lower},upperdir=${upper},workdir=${work}`)
    try {
      await using backend = createNamespaceBackend({ data })
      const workspace = join(folder, "workspace")
      const { exited, stdout } = await runShell(backend, workspace, "echo well > made; cat made")
      expect(stdout).toBe("well\n")
      await exited.discard()
      const limits = { memoryBytes: 32 * 2 ** 20, diskBytes: 512 * 2 ** 20 }
      const big = await runShell(backend, workspace, "head -c 100000000 /dev/zero > /tmp/big", { limits })
      expect(big.exited.ending).not.toEqual({ by: "exit", code: 0 })
      await big.exited.discard()
      expect((await backend.examine()).find(({ control }) => control === "layers-on-disk")).toMatchObject({
        state: "degraded",
        evidence: expect.stringContaining("overlayfs"),
      })
    } finally {
      umount(data, MNT_DETACH)
    }
  },
)
