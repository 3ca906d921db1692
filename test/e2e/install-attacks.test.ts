import { spawn } from "node:child_process"
import { randomFillSync } from "node:crypto"
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import {
  installBuildsFolder,
  installedLayersFolder,
  installedListsFolder,
  installedSpecsFolder,
} from "../../src/data-folder/paths.ts"
import type { InstallSpec } from "../../src/host/install/types.ts"
import { type InstallWorld, layerOf, npm, openInstallCore, openInstallWorld, pip } from "./install-world.ts"
import { publishGreeters } from "./install-greeters.ts"

const inFolder = (folder: string): readonly string[] => (existsSync(folder) ? readdirSync(folder) : [])
const filesBelow = (folder: string): readonly string[] => readdirSync(folder, { recursive: true }).map(String)
const nothingLeft = ({ data }: InstallWorld): void => {
  expect(inFolder(installBuildsFolder(data))).toEqual([])
  expect(inFolder(installedLayersFolder(data))).toEqual([])
}

const limitDisk = ({ data, registry }: InstallWorld, mebibytes: number): void => {
  const config = registry.config.replace("install: {", `install: { disk_mb: ${mebibytes},`)
  writeFileSync(join(data, "caisson.yaml"), config, { mode: 0o600 })
}

it("no script of a package runs, whatever it is called and whoever asks for it", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  const layer = layerOf(await world.installs.ensure(npm("greet")))
  expect(filesBelow(layer.folder).filter((path) => path.endsWith("ran"))).toEqual([])
})

it("members of an archive that climb out, are absolute, or are links leave nothing outside the layer", async () => {
  await using world = await openInstallWorld()
  await world.registry.publish({
    name: "climber",
    version: "1.0.0",
    files: {
      "../../climbed": "out",
      "/tmp/caisson-climbed": "out",
      "../../../../../../../../tmp/caisson-climbed": "out",
      passwd: { link: "/etc/passwd" },
      up: { link: "../../../../../../etc" },
      hard: { hardlink: "/etc/passwd" },
      "index.js": "1",
    },
  })
  const answer = await world.installs.ensure(npm("climber"))
  expect(existsSync("/tmp/caisson-climbed")).toBe(false)
  if (!answer.ok) {
    expect(answer.code).toBe("install_failed")
    nothingLeft(world)
    return
  }
  const { folder } = answer.value
  expect(inFolder(world.folder)).toEqual(["data"])
  for (const path of filesBelow(folder)) {
    const facts = lstatSync(join(folder, path))
    if (facts.isFile()) expect(readFileSync(join(folder, path), "utf8"), path).not.toContain("root:")
    expect(facts.isSymbolicLink() && !path.includes(".bin/"), path).toBe(false)
  }
})

it("a registry that sends the build to another host gets it nowhere, and the host is named", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  world.registry.answer("/greet/-/greet-2.1.0.tgz", (_request, response) => {
    response.writeHead(302, { location: "http://elsewhere.test/greet.tgz" }).end()
  })
  expect(await world.installs.ensure(npm("greet"))).toMatchObject({
    ok: false,
    code: "install_failed",
    message: expect.stringContaining("elsewhere.test:80 is not a declared host") as string,
    details: { denied: [{ reason: "host_not_allowed", target: "elsewhere.test:80" }] },
  })
  nothingLeft(world)
})

it("a dependency on an address, a repository or a folder is not fetched, and its host is named", async () => {
  await using world = await openInstallWorld()
  await world.registry.publish(
    { name: "by-url", version: "1.0.0", manifest: { dependencies: { x: "http://elsewhere.test/x.tgz" } } },
    { name: "by-git", version: "1.0.0", manifest: { dependencies: { x: "git+https://elsewhere.test/x.git" } } },
    { name: "by-folder", version: "1.0.0", manifest: { dependencies: { x: "file:/etc" } } },
  )
  expect(await world.installs.ensure(npm("by-url"))).toMatchObject({
    ok: false,
    code: "install_failed",
    details: { denied: [{ target: "elsewhere.test:80" }] },
  })
  expect(await world.installs.ensure(npm("by-git"))).toMatchObject({ ok: false, code: "install_failed" })
  const answer = await world.installs.ensure(npm("by-folder"))
  if (answer.ok) for (const path of filesBelow(answer.value.folder)) expect(path).not.toContain("passwd")
  else expect(answer.code).toBe("install_failed")
})

it("an archive that is not what its registry says is not installed", async () => {
  await using world = await openInstallWorld()
  await world.registry.publish({ name: "swapped", version: "1.0.0", integrity: `sha512-${"A".repeat(86)}==` })
  expect(await world.installs.ensure(npm("swapped"))).toMatchObject({
    ok: false,
    code: "install_failed",
    details: { stderr: expect.stringContaining("EINTEGRITY") as string },
  })
  world.registry.publishWheels({ name: "swappedpy", version: "1.0", files: { "a.py": "1" } })
  world.registry.answer("/files/swappedpy-1.0-py3-none-any.whl", (_request, response) => void response.end("PK"))
  expect(await world.installs.ensure(pip("swappedpy"))).toMatchObject({
    ok: false,
    code: "install_failed",
    details: { stderr: expect.stringContaining("DO NOT MATCH THE HASHES") as string },
  })
  nothingLeft(world)
})

it("a package that unpacks to more files than a layer may hold is refused, and nothing of it is there", async () => {
  await using world = await openInstallWorld()
  const deep = Array.from({ length: 80 }, (_, i) => `d${i}`).join("/")
  await world.registry.publish({ name: "deep", version: "1.0.0", files: { [`${deep}/x`]: "1" } })
  expect(await world.installs.ensure(npm("deep"))).toMatchObject({
    ok: false,
    code: "install_failed",
    message: expect.stringContaining("deeper than 64") as string,
  })
  nothingLeft(world)
})

it("a package that unpacks to more bytes than the build may write is ended, and nothing of it is there", async () => {
  await using world = await openInstallWorld()
  limitDisk(world, 24)
  // Little on the way, but not so little that npm itself takes it for a bomb.
  const bytes = new Uint8Array(12 * 2 ** 20)
  for (let at = 0; at < bytes.length; at += 1024) randomFillSync(bytes, at, 32)
  const files = Object.fromEntries(Array.from({ length: 6 }, (_, i) => [`part-${i}`, { bytes }]))
  await world.registry.publish({ name: "bomb", version: "1.0.0", files })
  await using core = await openInstallCore(world.data)
  expect(await core.installs.ensure(npm("bomb"))).toMatchObject({
    ok: false,
    code: "install_failed",
    message: expect.stringContaining("it wrote more than `install.disk_mb` lets it") as string,
  })
  nothingLeft(world)
})

it("a layer that was changed afterwards is refused by name, and installed anew when that is asked for", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  const layer = layerOf(await world.installs.ensure(npm("greet")))
  const file = join(layer.folder, "node_modules/greet/cli.js")
  const before = readFileSync(file)
  const changes: readonly (() => void)[] = [
    () => writeFileSync(file, before.toString().replace("hello", "jello").replace("first", "frist")),
    () => writeFileSync(join(layer.folder, "node_modules/greet/extra.js"), "1"),
  ]
  for (const change of changes) {
    for (const path of [file, join(layer.folder, "node_modules/greet")]) chmodSync(path, 0o755)
    change()
    for (const answer of [await world.installs.find(npm("greet")), await world.installs.ensure(npm("greet"))])
      expect(answer).toMatchObject({
        ok: false,
        code: "install_failed",
        message: expect.stringMatching(/node_modules\/greet\/(cli|extra)\.js" is not as it was installed/) as string,
      })
    expect(layerOf(await world.installs.ensure(npm("greet"), { repair: true })).digest).toBe(layer.digest)
    expect(readFileSync(file)).toEqual(before)
  }
})

it("what a layer's files are called and hold counts, not when they were looked at or restored", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  const layer = layerOf(await world.installs.ensure(npm("greet")))
  const file = join(layer.folder, "node_modules/greet/cli.js")
  const before = readFileSync(file)
  chmodSync(file, 0o755)
  writeFileSync(file, before)
  chmodSync(file, 0o555)
  expect(layerOf(await world.installs.find(npm("greet"))).digest).toBe(layer.digest)
})

it("a cancelled build ends, and leaves nothing", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  const cancel = new AbortController()
  world.registry.answer("/greet", () => cancel.abort())
  expect(await world.installs.ensure(npm("greet"), { signal: cancel.signal })).toMatchObject({
    ok: false,
    code: "cancelled",
  })
  nothingLeft(world)
  world.registry.answer("/greet", undefined)
  layerOf(await world.installs.ensure(npm("greet")))
})

const installer = join(import.meta.dirname, "install-process.ts")
const ended = (child: ReturnType<typeof spawn>): Promise<number | null> =>
  new Promise((resolve) => child.once("exit", (code) => resolve(code)))

it("processes that want the same at once: one builds, the others wait and get the same", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  const children = Array.from({ length: 3 }, () =>
    spawn(process.execPath, [installer, world.data, "greet"], { stdio: ["ignore", "pipe", "inherit"] }),
  )
  const said = await Promise.all(
    children.map(async (child) => {
      const chunks: Buffer[] = []
      child.stdout.on("data", (chunk: Buffer) => chunks.push(chunk))
      expect(await ended(child)).toBe(0)
      return Buffer.concat(chunks).toString().trim().split("\n").at(-1)
    }),
  )
  expect(new Set(said).size).toBe(1)
  expect(said[0]).toMatch(/^sha256:/)
  expect(world.registry.asked.filter((path) => path.endsWith("greet-2.1.0.tgz"))).toHaveLength(1)
  expect(inFolder(installedLayersFolder(world.data))).toHaveLength(1)
})

it("a build that was killed leaves nothing that counts, and the next one clears it away", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  const child = spawn(process.execPath, [installer, world.data, "greet"], { stdio: "ignore" })
  const asked = Promise.withResolvers<void>()
  world.registry.answer("/greet/-/greet-2.1.0.tgz", () => asked.resolve())
  await asked.promise
  child.kill("SIGKILL")
  await ended(child)
  expect(inFolder(installBuildsFolder(world.data))).toHaveLength(1)
  expect(await world.installs.find(npm("greet"))).toMatchObject({ ok: false, code: "tool_unavailable" })
  // Another request clears it away too.
  await world.registry.publish({ name: "other", version: "1.0.0" })
  layerOf(await world.installs.ensure(npm("other")))
  expect(inFolder(installBuildsFolder(world.data))).toEqual([])
  world.registry.answer("/greet/-/greet-2.1.0.tgz", undefined)
  layerOf(await world.installs.ensure(npm("greet")))
})

it("a driver's own folder is frozen as it is, and again when it changed; links that lead out of it are refused", async () => {
  await using world = await openInstallWorld()
  const folder = join(world.folder, "package")
  mkdirSync(join(folder, "lib"), { recursive: true })
  writeFileSync(join(folder, "lib/index.js"), "export default 1\n")
  symlinkSync("lib/index.js", join(folder, "main.js"))
  const spec: InstallSpec = { source: "local", folder }
  const first = layerOf(await world.installs.ensure(spec))
  expect(readFileSync(join(first.folder, "main.js"), "utf8")).toBe("export default 1\n")
  expect(first.inside).toBe("/opt/installed/local")
  writeFileSync(join(folder, "lib/index.js"), "export default 2\n")
  const second = layerOf(await world.installs.ensure(spec))
  expect(second.digest).not.toBe(first.digest)
  writeFileSync(join(folder, "lib/index.js"), "export default 1\n")
  expect(layerOf(await world.installs.ensure(spec)).digest).toBe(first.digest)
  // By its words it stays inside; through the other link it does not.
  mkdirSync(join(folder, "a/b"), { recursive: true })
  symlinkSync("../..", join(folder, "a/b/top"))
  for (const target of ["a/b/top/../../../caisson.yaml", "/etc/passwd", "../data"]) {
    symlinkSync(target, join(folder, "out"))
    expect(await world.installs.ensure(spec)).toMatchObject({
      ok: false,
      code: "install_failed",
      message: expect.stringContaining("leads out of it") as string,
    })
    rmSync(join(folder, "out"))
  }
})

it.each([
  [{ source: "brew", packages: [{ name: "ripgrep" }] }, /this host installs by apt, npm, pip, .*not by brew/],
  [
    { source: "cargo", packages: [{ name: "--git=https://evil.test/x" }] },
    /is not a package and a version of cargo|there is no cargo/,
  ],
  [
    { source: "go", packages: [{ name: "x.test/y", version: "-modfile=z" }] },
    /is not a package and a version of go|there is no go/,
  ],
  [{ source: "apt", packages: [{ name: "jq", version: "1 -o=x" }] }, /is not a package and a version of apt/],
  [npm("--registry=http://evil.test"), /is not a package and a version of npm/],
  [npm("greet", "http://evil.test/x.tgz"), /is not a package and a version of npm/],
  [npm("greet", "npm:other@1"), /is not a package and a version of npm/],
  [npm("greet", "file:/etc"), /is not a package and a version of npm/],
  [npm("../../etc"), /is not a package and a version of npm/],
  [pip("--index-url=http://evil.test"), /is not a package and a version of pip/],
  [pip("x @ http://evil.test/x.whl"), /is not a package and a version of pip/],
  [pip("x", "@ http://evil.test/x.whl"), /is not a package and a version of pip/],
  [{ source: "npm", packages: [] }, /1 to 64 packages/],
])("refuses %j before anything runs", async (spec, message) => {
  await using world = await openInstallWorld()
  const answer = await world.installs.ensure(spec as InstallSpec)
  expect(answer).toMatchObject({
    ok: false,
    code: "tool_unavailable",
    message: expect.stringMatching(message) as string,
  })
  expect(world.registry.asked).toEqual([])
})

it("no build reaches a registry that the operator's own list leaves out", async () => {
  await using world = await openInstallWorld()
  const { port } = world.registry
  writeFileSync(
    join(world.data, "caisson.yaml"),
    `egress: { allow: [api.example.com], services: { registry.test: "127.0.0.1:${port}" } }\ninstall: { npm_registry: "http://registry.test:${port}/" }\n`,
    { mode: 0o600 },
  )
  await using core = await openInstallCore(world.data)
  expect(await core.installs.ensure(npm("greet"))).toMatchObject({
    ok: false,
    code: "install_failed",
    message: expect.stringContaining("`egress.allow` in caisson.yaml leaves out") as string,
  })
  expect(world.registry.asked).toEqual([])
})

it("prune removes what nobody asks for, once it was not used for a while, and keeps the rest", async () => {
  await using world = await openInstallWorld()
  await publishGreeters(world.registry)
  await world.registry.publish({ name: "other", version: "1.0.0" })
  const kept = layerOf(await world.installs.ensure(npm("greet")))
  const other = layerOf(await world.installs.ensure(npm("other")))
  // Used a moment ago: a call may have it mounted.
  expect(await world.installs.prune([npm("greet")])).toEqual({ removed: [], bytes: 0 })
  const before = new Date(Date.now() - 2 * 3600 * 1000)
  for (const folder of [installedSpecsFolder(world.data), installedListsFolder(world.data)])
    for (const name of readdirSync(folder)) utimesSync(join(folder, name), before, before)
  expect(await world.installs.prune([npm("greet")])).toMatchObject({ removed: [other.digest] })
  expect(existsSync(other.folder)).toBe(false)
  expect(layerOf(await world.installs.find(npm("greet"))).digest).toBe(kept.digest)
  expect(await world.installs.find(npm("other"))).toMatchObject({ ok: false, code: "tool_unavailable" })
  layerOf(await world.installs.ensure(npm("other")))
})
