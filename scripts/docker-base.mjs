#!/usr/bin/env node
/**
 * A base for `Dockerfile.runner` from Debian's packages, where no registry can be reached.
 *
 *   node scripts/docker-base.mjs [--suite bookworm] [--mirror URL] [--out FILE] [--load]
 *
 * Runs debootstrap (root), packs the result as an archive whose image id follows from its content, writes it to FILE
 * or loads it into the engine as `caisson/base:SUITE`.
 */
import { spawnSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Readable } from "node:stream"
import { parseArgs } from "node:util"
import { discoverEngine } from "../src/sandbox/docker/discovery.ts"
import { openEngine } from "../src/sandbox/docker/engine.ts"
import { imageArchive } from "../src/sandbox/docker/image-archive.ts"

const { values } = parseArgs({
  options: {
    suite: { type: "string", default: "bookworm" },
    mirror: { type: "string", default: "http://deb.debian.org/debian" },
    out: { type: "string" },
    load: { type: "boolean", default: false },
  },
})
const fail = (message) => {
  process.stderr.write(`docker-base: ${message}\n`)
  process.exit(1)
}
if (process.getuid?.() !== 0) fail("debootstrap needs root")
if (!existsSync("/usr/sbin/debootstrap")) fail("debootstrap is not installed: apt-get install debootstrap")
if (!/^[a-z]+$/.test(values.suite)) fail(`not a suite: ${values.suite}`)
if (values.out === undefined && !values.load) fail("say --out FILE or --load")

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
    values.mirror,
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
