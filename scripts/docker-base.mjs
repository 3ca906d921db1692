#!/usr/bin/env node
/**
 * A base for `Dockerfile.runner` from Debian's packages, where no registry can be reached.
 *
 *   node scripts/docker-base.mjs [--suite bookworm] [--mirror URL] [--out FILE] [--load]
 *
 * Runs debootstrap (root) with this machine's own Debian mirror, packs the result as an archive whose image id follows
 * from its content, writes it to FILE or loads it into the engine as `caisson/base:SUITE`. Starts on any Node that
 * set-up starts on.
 */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { mirrorOf } from "./apt-mirror.mjs"
import { isNewEnough, runToEnd } from "./house.mjs"
import { setup } from "./setup.mjs"

const { values } = parseArgs({
  options: {
    suite: { type: "string", default: "bookworm" },
    mirror: { type: "string" },
    out: { type: "string" },
    load: { type: "boolean", default: false },
  },
})
const fail = (message) => {
  process.stderr.write(`docker-base: ${message}\n`)
  process.exit(1)
}
if (process.getuid?.() !== 0) fail("debootstrap needs root")
if (spawnSync("debootstrap", ["--version"]).error) fail("debootstrap is not installed: apt-get install debootstrap")
if (!/^[a-z]+$/.test(values.suite)) fail(`not a suite: ${values.suite}`)
if (values.out === undefined && !values.load) fail("say --out FILE or --load")

const node = setup({ packagesOnly: true })
if (!isNewEnough(process.versions.node))
  process.exit(await runToEnd(node, [fileURLToPath(import.meta.url), ...process.argv.slice(2)]))
// The host's own code, which is TypeScript: only now is this a Node that reads it.
const { discoverEngine } = await import("../src/sandbox/docker/engine/discovery.ts")
const { openEngine } = await import("../src/sandbox/docker/engine/engine.ts")
const { imageArchive } = await import("../src/sandbox/docker/images/image-archive.ts")

/** What differs from one run to the next, or serves nobody in a sandbox. */
const LEFT_OUT = [
  "var/cache/apt/*",
  "var/lib/apt/lists/*",
  "var/log/*",
  "var/cache/ldconfig/*",
  "var/cache/debconf/*-old",
  "var/lib/dpkg/*-old",
  "usr/share/doc/*",
  "usr/share/man/*",
  "usr/share/info/*",
  "usr/share/locale/*",
  "etc/machine-id",
  "etc/hostname",
  "etc/resolv.conf",
  "dev/*",
  "proc/*",
  "sys/*",
  "*.pyc",
]

const dir = mkdtempSync(join(tmpdir(), "caisson-base-"))
const run = (program, args) => {
  const done = spawnSync(program, args, { stdio: ["ignore", "inherit", "inherit"] })
  if (done.status !== 0) throw new Error(`${program} failed`)
}
try {
  const root = join(dir, "root")
  const layer = join(dir, "layer.tar")
  run("debootstrap", [
    "--variant=minbase",
    "--include=python3,perl-base,ca-certificates",
    values.suite,
    root,
    values.mirror ?? mirrorOf(values.suite),
  ])
  run("tar", [
    "-C",
    root,
    "--sort=name",
    "--mtime=@0",
    "--numeric-owner",
    "--format=gnu",
    ...LEFT_OUT.map((pattern) => `--exclude=./${pattern}`),
    "-cf",
    layer,
    ".",
  ])
  const architecture = process.arch === "arm64" ? "arm64" : "amd64"
  const repository = "caisson/base"
  const image = await imageArchive([readFileSync(layer)], {
    architecture,
    repository,
    tag: values.suite,
    env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"],
  })
  if (values.out !== undefined) writeFileSync(values.out, image.bytes)
  if (values.load) {
    const found = await discoverEngine()
    if (!found.ok) throw new Error(found.message)
    const loaded = await openEngine(found.endpoint).load(Readable.from([image.bytes]), (line) =>
      process.stderr.write(`${line}\n`),
    )
    if (!loaded.ok) throw new Error(loaded.failure.message)
  }
  process.stdout.write(`${repository}:${values.suite} ${image.id}\n`)
} catch (error) {
  process.exitCode = 1
  process.stderr.write(`docker-base: ${error.message}\n`)
} finally {
  rmSync(dir, { recursive: true, force: true })
}
