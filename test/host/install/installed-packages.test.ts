/** What a manager's notes tell is read from the build's own folder alone, whatever a package put in their place. */
import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, expect, test } from "vitest"
import { installedPackages } from "../../../src/host/install/installed-packages.ts"
import { scratch } from "../../cli/run-caisson.ts"

let room: ReturnType<typeof scratch>
let folder: string
beforeEach(() => {
  room = scratch()
  folder = join(room.folder, "built")
  mkdirSync(folder)
})
afterEach(() => room[Symbol.dispose]())

const NPM = JSON.stringify({ packages: { "": {}, "node_modules/left": { version: "1.0.0" } } })
const CARGO = '"greet 1.2.3 (registry+https://x)" = ["greet"]\n'
const noted = { npm: ["node_modules/.package-lock.json", NPM], cargo: [".crates.toml", CARGO] } as const
const told = (source: "npm" | "pip" | "cargo") => installedPackages({ source, packages: [] }, folder)

test.each(["npm", "cargo"] as const)("%s: reads what the manager left", (source) => {
  const [name, text] = noted[source]
  mkdirSync(dirname(join(folder, name)), { recursive: true })
  writeFileSync(join(folder, name), text)
  expect(told(source)).toHaveLength(1)
})

test.each(["npm", "cargo"] as const)("%s: follows no link out of the build, and waits for no pipe", (source) => {
  const [name, text] = noted[source]
  const outside = join(room.folder, "outside")
  writeFileSync(outside, text)
  const at = join(folder, name)
  mkdirSync(dirname(at), { recursive: true })
  symlinkSync(outside, at)
  expect(told(source)).toEqual([])
  // No end and no size: it would be read until there is no memory left.
  rmSync(at)
  symlinkSync("/dev/zero", at)
  expect(told(source)).toEqual([])
  rmSync(at)
  execFileSync("mkfifo", [at])
  expect(told(source)).toEqual([])
})

test("pip: lists no folder elsewhere", () => {
  const outside = join(room.folder, "outside")
  mkdirSync(join(outside, "left-1.0.0.dist-info"), { recursive: true })
  symlinkSync(outside, join(folder, "site"))
  expect(told("pip")).toEqual([])
})
