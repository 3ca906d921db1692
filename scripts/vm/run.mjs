/**
 * `npm run test:vm [-- --as root,plain,delegated,unit] [--only doctor,tour,…] [--all] [--cpus N] [--verbose]`: the tests
 * that depend on the machine, on Debian's own kernel with systemd and cgroup v2, in an emulated machine, from a copy of
 * this work tree.
 *
 * Guarantees: doctor, tour, sandboxes with their limits, escapes, crashes and calls, whole as an ordinary user; as root
 * all but the escapes that no control group bears on and commits as an ordinary user; as one with delegated groups and as one in a system unit with
 * `Delegate=yes`, of escapes, crashes and calls what groups bear on (`--all`: whole as everybody). Of the kills at every
 * step of a commit a sample is shown.
 * The last line reads `N passed, N failed`; fails if a step failed, is missing, or the machine did not end by itself.
 * Assumes: root (for debootstrap, the first time), qemu-system-x86, debootstrap, e2fsprogs; more than an hour on two idle
 * cores, several on busy ones.
 */
import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { root, say } from "../house.mjs"
import { setup } from "../setup.mjs"
import { cacheFolder, guestImage, makeDisk, run } from "./image.mjs"
import { boot } from "./machine.mjs"
import { planOf, steps, users } from "./plan.mjs"

const { values } = parseArgs({
  options: {
    as: { type: "string", default: "root,plain,delegated,unit" },
    only: { type: "string", default: "" },
    cpus: { type: "string", default: "2" },
    memory: { type: "string", default: "4096" },
    minutes: { type: "string", default: "600" },
    all: { type: "boolean", default: false },
    verbose: { type: "boolean", default: false },
  },
})

const missing = [
  ["/usr/bin/qemu-system-x86_64", "qemu-system-x86"],
  ["/usr/sbin/debootstrap", "debootstrap"],
  ["/usr/sbin/mkfs.ext4", "e2fsprogs"],
]
const fail = (message) => {
  say(`vm: ${message}`)
  process.exit(1)
}
for (const [path, name] of missing) if (!existsSync(path)) fail(`${path} is not installed: apt-get install -y ${name}`)
if (process.arch !== "x64")
  fail(`the guest runs the packages of this work tree, and they are for ${process.arch}, not x64`)
if (process.getuid?.() !== 0) fail("building the guest needs root")
const wordsOf = (/** @type {string} */ list) => list.split(",").filter((word) => word !== "")
const as = wordsOf(values.as)
const stranger = as.find((word) => !users.includes(word))
if (stranger !== undefined) fail(`--as takes ${users.join(", ")}, not ${stranger}`)
const only = wordsOf(values.only)
const unknown = only.find((word) => !steps.includes(word))
if (unknown !== undefined) fail(`--only takes ${steps.join(", ")}, not ${unknown}`)
const plan = planOf(as, only, values.all)

/** The work tree as a disk: everything but the history, without its types, with plan and token. */
const houseDisk = (folder, token, node) => {
  const tree = join(folder, "tree")
  mkdirSync(tree)
  for (const name of readdirSync(root))
    if (name !== ".git") run("cp", ["-a", "--reflink=auto", join(root, name), join(tree, name)])
  run(node, ["--no-warnings", join(root, "scripts", "vm", "strip.mjs"), tree])
  mkdirSync(join(tree, "vm"))
  writeFileSync(join(tree, "vm", "token"), `${token}\n`)
  const lines = plan.map(({ who, minutes, name, command }) => `${who}\t${minutes * 60}\t${name}\t${command}\n`)
  writeFileSync(join(tree, "vm", "plan"), lines.join(""))
  const disk = join(folder, "house.img")
  makeDisk(tree, disk, { label: "house", size: "3G" })
  rmSync(tree, { recursive: true })
  return disk
}

const node = setup({ forTests: true })
const image = guestImage()
/** Runs that were killed left their folders. */
for (const name of readdirSync(cacheFolder())) {
  const pid = /^run-(\d+)-/.exec(name)?.[1]
  if (pid !== undefined && !existsSync(`/proc/${pid}`))
    rmSync(join(cacheFolder(), name), { recursive: true, force: true })
}
const folder = mkdtempSync(join(cacheFolder(), `run-${process.pid}-`))
const startedAt = Date.now()
const clock = () => {
  const seconds = Math.round((Date.now() - startedAt) / 1000)
  return `${String(Math.floor(seconds / 60)).padStart(3)}:${String(seconds % 60).padStart(2, "0")}`
}
const ended = new Map()
let isDone = false
let heard = []
const token = randomBytes(12).toString("hex")
const hear = (line) => {
  if (!line.startsWith(`${token} `)) {
    heard.push(line)
    if (values.verbose) say(line)
    return
  }
  const words = line.slice(token.length + 1).split(" ")
  if (words[0] === "begin") heard = []
  if (words[0] === "done") isDone = true
  if (words[0] === "end") {
    const [, code, who, name] = words
    const tests = heard.map((kept) => /^ +Tests +(.*)$/.exec(kept)?.[1]).find((found) => found !== undefined)
    // A run in which every test was skipped ends well, and shows nothing.
    const trouble =
      code === "0" ? (tests?.includes(" passed") === false ? "no test ran" : "") : code === "124" ? "out of time" : code
    ended.set(`${who} ${name}`, trouble)
    if (trouble !== "" && !values.verbose) for (const kept of heard) say(`    ${kept}`)
    const counts = tests === undefined ? "" : `: ${tests}`
    say(`${clock()}  ${trouble === "" ? "passed" : `FAILED (${trouble})`}  ${who}: ${name}${counts}`)
  } else say(`${clock()}  ${words.join(" ")}`)
}
let trouble
try {
  say("vm: laying the work tree on a disk")
  const house = houseDisk(folder, token, node)
  const bootLog = join(folder, "console.log")
  say(`vm: booting (${plan.length} steps; the kernel's own words go to ${bootLog})`)
  trouble = await boot(
    image,
    {
      house,
      console: bootLog,
      cpus: Number(values.cpus),
      memoryMiB: Number(values.memory),
      deadlineMs: Number(values.minutes) * 60_000,
    },
    hear,
  )
  if (trouble === undefined && !isDone) trouble = "the machine went off before the plan's end"
  if (trouble !== undefined && existsSync(bootLog))
    for (const line of readFileSync(bootLog, "utf8").split("\n").slice(-30)) say(`    ${line}`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
if (trouble !== undefined) say(`vm: ${trouble}`)
const passed = plan.filter(({ who, name }) => ended.get(`${who} ${name}`) === "").length
console.log(`${passed} passed, ${plan.length - passed} failed`)
process.exitCode = passed === plan.length && trouble === undefined ? 0 : 1
