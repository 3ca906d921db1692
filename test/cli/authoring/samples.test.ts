/** What of a workspace is taken along as an example's files: plain files below it, and nothing that leads elsewhere. */
import { execFileSync } from "node:child_process"
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { samplesOf } from "../../../src/cli/commands/authoring/samples.ts"
import { scratch } from "../run-caisson.ts"

let room: ReturnType<typeof scratch>
let workspace: string
beforeEach(() => {
  room = scratch()
  workspace = join(room.folder, "workspace")
  mkdirSync(join(workspace, "sub"), { recursive: true })
})
afterEach(() => room[Symbol.dispose]())

const taken = (...words: readonly string[]): readonly string[] =>
  samplesOf(workspace, words).map(({ path, bytes }) => `${path} ${bytes?.length}`)

test("takes the files that words name, as they are, once each", () => {
  writeFileSync(join(workspace, "a.txt"), "one")
  writeFileSync(join(workspace, "sub", "b"), Buffer.from([0xff, 0]))
  const samples = samplesOf(workspace, ["a.txt", "-v", "a.txt", "sub/b", "gone", "sub", "../outside"])
  expect(samples.map(({ path, text }) => [path, text])).toEqual([
    ["example/a.txt", "one"],
    ["example/sub/b", "(2 bytes that are no text)"],
  ])
  expect(samples[1]?.bytes).toEqual(Buffer.from([0xff, 0]))
})

test("takes no key along that the program alone chose to open", () => {
  for (const name of ["plain", "sub/.env", "deploy.pem", "id_ed25519", "api-token.txt", "monkey.txt"])
    writeFileSync(join(workspace, name), "one")
  writeFileSync(join(workspace, "notes"), "-----BEGIN OPENSSH PRIVATE KEY-----\n")
  const opened = ["plain", "sub/.env", "deploy.pem", "id_ed25519", "api-token.txt", "monkey.txt", "notes"]
  expect(samplesOf(workspace, [], opened).map(({ path }) => path)).toEqual(["example/plain", "example/monkey.txt"])
  // Whoever names one means it.
  expect(samplesOf(workspace, ["deploy.pem"], opened).map(({ path }) => path)).toContain("example/deploy.pem")
})

test("follows no link, waits for no pipe, and takes nothing larger than an example may be", () => {
  const outside = join(room.folder, "outside")
  mkdirSync(outside)
  writeFileSync(join(outside, "key"), "private")
  symlinkSync(join(outside, "key"), join(workspace, "link"))
  symlinkSync(outside, join(workspace, "linked"))
  execFileSync("mkfifo", [join(workspace, "pipe")])
  writeFileSync(join(workspace, "most"), "x".repeat(65_536))
  writeFileSync(join(workspace, "more"), "x".repeat(65_537))
  expect(taken("link", "linked/key", "pipe", "most", "more")).toEqual(["example/most 65536"])
})
