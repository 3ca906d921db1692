import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { setTimeout as pause } from "node:timers/promises"
import { afterAll, expect, it } from "vitest"
import { containerCanaries, containerControls, parseContainerFindings } from "../../../src/sandbox/docker/canaries.ts"
import { openEngine } from "../../../src/sandbox/docker/engine/engine.ts"
import { imageArchive, layerOf } from "../../../src/sandbox/docker/images/image-archive.ts"
import { acquireEngine } from "../../support/docker-engine.ts"
import { engineSuite } from "./engine-suite.ts"
import { containersOf, openPlace } from "./support.ts"

const engine = await acquireEngine()
const socket = engine.ok ? engine.socket : ""

engineSuite("what a container must not allow", engine, () => {
  afterAll(async () => {
    if (engine.ok) await engine[Symbol.asyncDispose]()
  })

  it("proves every control with a canary in a real container", async () => {
    await using place = openPlace(socket)
    const reports = await place.backend.examine()
    expect(reports.filter((report) => report.state !== "enforced")).toEqual([])
    expect(reports.map((report) => report.control)).toEqual(
      expect.arrayContaining([
        ...containerControls,
        "engine",
        "engine-cgroups",
        "engine-storage",
        "engine-user-namespaces",
      ]),
    )
  })

  it("has canaries that do fail where the control is off", async () => {
    const folder = mkdtempSync(join(tmpdir(), "caisson-weak-"))
    const api = openEngine({ origin: "given", socketPath: socket })
    const tops = ["bin", "sbin", "lib", "lib64", "usr", "etc", "out", "proc", "sys", "dev", "tmp", "var", "run", "home"]
    const image = await imageArchive([await layerOf(tops.map((path) => ({ path: `${path}/`, mode: 0o755 })))], {
      architecture: process.arch === "arm64" ? "arm64" : "amd64",
      repository: "caisson/weak-test",
    })
    try {
      mkdirSync(join(folder, "out"))
      expect(await api.load(Readable.from([image.bytes]))).toMatchObject({ ok: true })
      const created = await api.create({
        Image: image.id,
        Entrypoint: ["/usr/bin/perl"],
        Cmd: [
          "-e",
          `open(STDOUT, ">", "/out/said"); ${containerCanaries}; close STDOUT; rename "/out/said", "/out/done"`,
        ],
        HostConfig: {
          NetworkMode: "none",
          SecurityOpt: ["seccomp=unconfined", "apparmor=unconfined"],
          MaskedPaths: [],
          ReadonlyPaths: [],
          LogConfig: { Type: "none", Config: {} },
          Binds: [
            "/usr:/usr:ro",
            "/lib:/lib:ro",
            "/lib64:/lib64:ro",
            `${join(folder, "out")}:/out`,
            `${socket}:/var/run/docker.sock`,
          ],
        },
      })
      if (!created.ok) throw new Error(created.failure.message)
      try {
        expect(await api.start(created.value)).toEqual({ ok: true, value: expect.anything() as unknown })
        const done = join(folder, "out", "done")
        while (!existsSync(done)) {
          const state = await api.inspect(created.value)
          if (state.ok && !state.value.running && !existsSync(done))
            throw new Error(`the canaries ended early: ${state.value.exitCode}`)
          await pause(20)
        }
        const absent = parseContainerFindings(readFileSync(done, "utf8"))
          .filter((report) => report.state === "absent")
          .map((report) => report.control)
        const onThisKernel = [
          ...(existsSync("/proc/sysrq-trigger") ? ["sysrq"] : []),
          ...(existsSync("/sys/fs/cgroup/memory/release_agent") ? ["cgroup-release-agent"] : []),
        ]
        expect(absent).toEqual(
          expect.arrayContaining([
            ...onThisKernel,
            "engine-socket-absent",
            "core-pattern",
            "device-nodes",
            "read-only-root",
            "kernel-interfaces",
            "bridge-untouchable",
            "capabilities-none",
            "filters-loaded",
          ]),
        )
      } finally {
        await api.remove(created.value)
        await api.removeImage(image.id)
      }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  })

  it("covers the message queues that engines mount with an empty folder that cannot be written", async () => {
    await using place = openPlace(socket)
    const { out, err } = await place.sh("ls -A /dev/mqueue; echo x > /dev/mqueue/queue; mkdir /dev/mqueue/folder")
    expect(out).toBe("")
    expect(err).toMatch(/cannot create \/dev\/mqueue\/queue: (Read-only file system|Permission denied)/)
    expect(err).toMatch(/mkdir: .*(Read-only file system|Permission denied)/)
  })

  it("shows no trace of the host's engine, data or process in what a program can read", async () => {
    await using place = openPlace(socket)
    const { out } = await place.sh(
      "cat /proc/self/cgroup /proc/self/mountinfo /proc/1/cmdline /proc/mounts; env; ls -la /run/caisson",
    )
    expect(out).not.toContain("TOKEN")
    for (const line of out.split("\n").filter((text) => text.includes("docker"))) expect(line).not.toContain(".sock")
  })

  it("keeps arguments, environment and input out of what the engine can show", async () => {
    await using place = openPlace(socket)
    const prepared = await place.prepare({ env: { PATH: "/usr/bin", SECRET: "value-of-the-secret" } })
    const [found] = (await containersOf(socket)) ?? []
    if (found === undefined) throw new Error("no container is parked")
    const ended = await prepared.run({
      argv: ["/usr/bin/sh", "-c", "echo $SECRET; echo argument-of-the-call"],
      stdin: "input",
      workspace: place.workspace,
    })
    if (!ended.ok) throw new Error(ended.message)
    expect(Buffer.from(ended.stdout.bytes).toString()).toBe("value-of-the-secret\nargument-of-the-call\n")
    const { default: Docker } = await import("dockerode")
    const shown = JSON.stringify(await new Docker({ socketPath: socket }).getContainer(found).inspect())
    expect(shown).not.toContain("value-of-the-secret")
    expect(shown).not.toContain("argument-of-the-call")
    await ended.discard()
  })
})
