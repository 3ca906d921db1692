/**
 * `npm run test:vm [-- --machine uml,qemu] [--as root,plain,delegated,unit] [--only doctor,tour,…] [--all] [--cpus N]
 * [--verbose]`: the tests that depend on the machine, with Debian, systemd and cgroup v2, in machines of their own, from a
 * copy of this work tree.
 *
 * Guarantees: in User-Mode Linux doctor, tour, sandboxes with their limits, escapes, crashes and calls, whole as root and
 * as an ordinary user; as one with delegated groups and as one in a system unit with `Delegate=yes`, of escapes, crashes
 * and calls what groups bear on. Then on Debian's own kernel, emulated by qemu, as each of them doctor, tour and the
 * limits that groups keep and the escapes that User-Mode Linux has no way for. `--all`: everything as everybody in both.
 * Of the kills at every step of a commit a sample is shown.
 * The last line reads `N passed, N failed`; fails if a step failed, is missing, or a machine did not end by itself.
 * Assumes: root (for debootstrap, the first time, and process namespaces), qemu-system-x86, debootstrap, e2fsprogs.
 */
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { root, say } from "../house.mjs"
import { setup } from "../setup.mjs"
import { cacheFolder, guestImage, run } from "./image.mjs"
import { machines } from "./machine.mjs"
import { planOf, steps, users } from "./plan.mjs"
import { tryOn } from "./trial.mjs"

const { values } = parseArgs({
  options: {
    as: { type: "string", default: "root,plain,delegated,unit" },
    only: { type: "string", default: "" },
    machine: { type: "string", default: "uml,qemu" },
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
const kinds = wordsOf(values.machine)
const other = kinds.find((word) => !Object.hasOwn(machines, word))
if (other !== undefined) fail(`--machine takes ${Object.keys(machines).join(", ")}, not ${other}`)

const node = setup({ forTests: true })
const image = guestImage()
/** Runs that were killed left their folders. */
for (const name of readdirSync(cacheFolder())) {
  const pid = /^run-(\d+)-/.exec(name)?.[1]
  if (pid !== undefined && !existsSync(`/proc/${pid}`))
    rmSync(join(cacheFolder(), name), { recursive: true, force: true })
}

const startedAt = Date.now()
const clock = () => {
  const seconds = Math.round((Date.now() - startedAt) / 1000)
  return `${String(Math.floor(seconds / 60)).padStart(3)}:${String(seconds % 60).padStart(2, "0")}`
}
const folder = mkdtempSync(join(cacheFolder(), `run-${process.pid}-`))
/** @type {{ passed: number, failed: number, trouble: string | undefined }[]} */
const results = []
try {
  const tree = join(folder, "tree")
  mkdirSync(tree)
  for (const name of readdirSync(root))
    if (name !== ".git") run("cp", ["-a", "--reflink=auto", join(root, name), join(tree, name)])
  run(node, ["--no-warnings", join(root, "scripts", "vm", "strip.mjs"), tree])

  const attempt = async (/** @type {import("./machine.mjs").Kind} */ kind, /** @type {string[]} */ who) => {
    const plan = planOf(kind, who, only, values.all)
    if (plan.length === 0) return
    const label = `${kind}-${who.length === 1 ? who[0] : "all"}`
    const told = (/** @type {string} */ words) => say(`${clock()}  ${label}  ${words}`)
    const size = { cpus: Number(values.cpus), memoryMiB: Number(values.memory) }
    const deadlineMs = Number(values.minutes) * 60_000
    const { verbose } = values
    results.push(
      await tryOn(kind, image, { tree, folder: join(folder, label), plan, ...size, deadlineMs, verbose, told }),
    )
  }
  if (kinds.includes("uml")) {
    // A machine with one processor for each user, as many at a time as there are processors here.
    const waiting = [...as]
    const worker = async () => {
      for (let who = waiting.shift(); who !== undefined; who = waiting.shift()) await attempt("uml", [who])
    }
    await Promise.all(Array.from({ length: Number(values.cpus) }, worker))
  }
  if (kinds.includes("qemu")) await attempt("qemu", as)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const sum = (/** @type {"passed" | "failed"} */ what) => results.reduce((total, one) => total + one[what], 0)
console.log(`${sum("passed")} passed, ${sum("failed")} failed`)
process.exitCode =
  results.length > 0 && results.every(({ failed, trouble }) => failed === 0 && trouble === undefined) ? 0 : 1
