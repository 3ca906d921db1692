import { tmpdir } from "node:os"
import { Readable } from "node:stream"
import { afterAll, beforeAll, expect, it } from "vitest"
import { createEgressProxy } from "../../../src/egress-proxy/index.ts"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { localBase, localRepository, serveRepository } from "./local-base.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { leftovers, openPlace, profileOf } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""
const api = openEngine({ origin: "given", socketPath: socket })
const mark = `t${process.pid}`
const base = `caisson/test-base:${mark}`
const built = new Set<string>([base])
const note = (line: string): void => {
  const name = /^building (\S+)/.exec(line)?.[1]
  if (name !== undefined) built.add(name)
}
const spawn = { cat: "/usr/bin/cat", ls: "/usr/bin/ls" }

engineSuite("the programs of an image", engine, () => {
  beforeAll(async () => {
    if (!engine.ok) return
    const image = await localBase(mark)
    expect(await api.load(Readable.from([image.bytes]))).toMatchObject({ ok: true })
    expect((await localBase(mark)).id).toBe(image.id)
  })
  afterAll(async () => {
    if (engine.ok) for (const name of [...built].reverse()) await api.removeImage(name)
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it("builds the runner image once, with progress, and finds it again by content", async () => {
    const lines: string[] = []
    const progress = (line: string): void => {
      lines.push(line)
      note(line)
    }
    const use = async (script: string) => {
      await using place = openPlace(socket, { rootfs: "image", base, progress })
      return await place.sh(script, { executables: { spawn } })
    }
    const { out, exited } = await use("echo from-the-image; ls /usr/bin; cat /etc/os-release")
    expect(exited.ending).toEqual({ by: "exit", code: 0 })
    expect(out).toContain("from-the-image\n")
    expect(out).toContain(`NAME=${mark}`)
    expect(out).not.toContain("apt-get")
    expect(lines.some((line) => line.startsWith("building caisson/runner:"))).toBe(true)
    lines.length = 0
    expect((await use("echo again")).out).toBe("again\n")
    expect(lines).toEqual([])
    expect(await leftovers(socket, tmpdir())).toMatchObject({ containers: 0 })
  }, 120_000)

  it("brings Node and refuses programs that are not listed", async () => {
    await using place = openPlace(socket, { rootfs: "image", base, progress: note })
    const node = await place.run(["/usr/local/bin/node", "-p", "1 + 1"], {
      executables: { program: "/usr/local/bin/node", spawn: {} },
      limits: { memoryBytes: 512 * 2 ** 20 },
    })
    expect(node.out).toBe("2\n")
    const unlisted = await place.sh("/usr/bin/perl -e 1; /usr/local/bin/node -p 1; /usr/bin/apt-get --version; ls", {
      executables: { spawn: {} },
    })
    expect(unlisted.err.match(/not found/g)).toHaveLength(4)
  }, 120_000)

  it("names a program that the image does not have", async () => {
    await using place = openPlace(socket, { rootfs: "image", base, progress: note })
    const answer = await place.backend.prepare(
      shapeOf(profileOf({ executables: { program: "/usr/bin/greet", spawn: {} } })),
    )
    expect(answer).toMatchObject({
      ok: false,
      message: expect.stringContaining("the image has no program /usr/bin/greet") as string,
    })
  }, 120_000)

  it("adds a driver's packages as a layer, through a registry channel and no other way, and builds it once", async (context) => {
    const info = await api.info()
    if (info.ok && info.value.product === "podman")
      context.skip("Podman's builds cannot be held to a channel, and are refused")
    const repository = localRepository()
    const requests: string[] = []
    const layerFor = () => ({ packages: ["greeter"], sources: ["deb [trusted=yes] http://repo.test/ ./"] })
    const executables = { program: "/usr/bin/greet", spawn: { sh: "/usr/bin/sh" } }
    await using place = openPlace(socket, {
      rootfs: "image",
      base,
      progress: note,
      layerFor,
      serveBuild: (channel) => serveRepository(channel, repository, requests),
    })
    expect((await place.run(["/usr/bin/greet"], { executables })).out).toBe("greetings\n")
    expect(requests).toContain("repo.test /greeter.deb")
    const count = requests.length
    await using later = openPlace(socket, { rootfs: "image", base, progress: note, layerFor })
    expect((await later.run(["/usr/bin/greet"], { executables })).out).toBe("greetings\n")
    expect(requests.length).toBe(count)
  }, 120_000)

  it("names the host that the build's proxy refused, before what the builder makes of it", async (context) => {
    const info = await api.info()
    if (info.ok && info.value.product === "podman")
      context.skip("Podman's builds cannot be held to a channel, and are refused")
    const denied: string[] = []
    await using place = openPlace(socket, {
      rootfs: "image",
      base,
      progress: note,
      layerFor: () => ({ packages: ["greeter"], sources: ["deb [trusted=yes] http://far.test/ ./"] }),
      serveBuild: async (channel) => {
        const proxy = await createEgressProxy({
          egress: ["near.test:80"],
          onVerdict: ({ decision, host, port }) => void (decision === "deny" && denied.push(`${host}:${port}`)),
        })
        void proxy.serve(channel)
        return { denied: () => denied, [Symbol.asyncDispose]: () => proxy.close() }
      },
    })
    const answer = await place.backend.prepare(
      shapeOf(profileOf({ executables: { program: "/usr/bin/greet", spawn: {} } })),
    )
    expect(answer).toMatchObject({
      ok: false,
      control: "engine-egress",
      message: expect.stringContaining("the build asked for far.test:80, which") as string,
      fix: expect.stringContaining("docker-base.mjs --load") as string,
    })
  }, 120_000)

  it("does not build a layer without a channel, nor with a package name that is none", async () => {
    await using place = openPlace(socket, {
      rootfs: "image",
      base,
      progress: note,
      layerFor: () => ({ packages: ["absent-package"] }),
    })
    expect(await place.backend.prepare(shapeOf(profileOf({ executables: { spawn: {} } })))).toMatchObject({
      ok: false,
      message: expect.stringContaining("no registry channel") as string,
    })
    await using other = openPlace(socket, {
      rootfs: "image",
      base,
      progress: note,
      layerFor: () => ({ packages: ["x; rm -rf /"] }),
      serveBuild: () => ({ async [Symbol.asyncDispose]() {} }),
    })
    expect(await other.backend.prepare(shapeOf(profileOf({ executables: { spawn: {} } })))).toMatchObject({
      ok: false,
      message: expect.stringContaining("not a package") as string,
    })
  }, 120_000)
})
