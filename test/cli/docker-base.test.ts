/** `scripts/docker-base.mjs` with a debootstrap that lays one file and writes down what it was asked. */
import { spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, test } from "vitest"
import { scratch } from "./run-caisson.ts"

const script = fileURLToPath(new URL("../../scripts/docker-base.mjs", import.meta.url))
const oldNode = "/usr/bin/node"
const major = Number(/^v(\d+)/.exec(spawnSync(oldNode, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1] ?? 0)

const make = (node: string, args: readonly string[]) => {
  const room = scratch()
  const bin = join(room.folder, "bin")
  mkdirSync(bin)
  writeFileSync(
    join(bin, "debootstrap"),
    `#!/bin/sh
[ "$1" = --version ] && exit 0
echo "$*" > ${room.folder}/asked
mkdir -p "$4/etc" && echo debian > "$4/etc/os-release"
`,
  )
  chmodSync(join(bin, "debootstrap"), 0o755)
  const out = join(room.folder, "base.tar")
  const ended = spawnSync(node, [script, "--out", out, ...args], {
    encoding: "utf8",
    env: { ...process.env, PATH: `${bin}:${process.env["PATH"]}` },
  })
  const asked = ended.status === 0 ? readFileSync(join(room.folder, "asked"), "utf8").trim().split(" ") : []
  const size = ended.status === 0 ? statSync(out).size : 0
  room[Symbol.dispose]()
  return { ...ended, asked, size }
}

test("the base of images is made on an old Node too, from the machine's own mirror", ({ skip }) => {
  if (process.getuid?.() !== 0) skip("needs root, as debootstrap does: run the tests with sudo")
  if (major < 18 || major >= 24) skip("needs a Node from 18 to 23 at /usr/bin/node: apt-get install -y nodejs")
  const { status, stdout, stderr, asked, size } = make(oldNode, [])
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" })
  expect(stdout).toMatch(/^caisson\/base:bookworm sha256:[0-9a-f]{64}\n$/)
  expect(size).toBeGreaterThan(1_000)
  expect(asked[2]).toBe("bookworm")
  expect(asked[4]).toMatch(/^https?:\/\//)
})

test("the base of images is made from the mirror that is named", ({ skip }) => {
  if (process.getuid?.() !== 0) skip("needs root, as debootstrap does: run the tests with sudo")
  expect(make(process.execPath, ["--mirror", "http://near.test/debian"]).asked[4]).toBe("http://near.test/debian")
})
