/**
 * All the set-up a fresh clone needs: npm packages, the Node to run with, `dist`, system packages.
 *
 * Guarantees: idempotent; does only what is missing and says so on stderr; plain JavaScript for Node 18 and later.
 * Where something that the host cannot do without stays missing, it ends with exit code 5 and one line that says
 * what to do.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./build.mjs"
import { findNode, isDistCurrent, isMain, root, say } from "./house.mjs"
import { ensureSystemPackages } from "./system-packages.mjs"

const hostCannotRun = 5
const lockfile = join(root, "package-lock.json")
const stamp = join(root, "node_modules", ".caisson-lock-digest")
const installed = join(root, "node_modules", ".package-lock.json")

const digestOfLock = () => createHash("sha256").update(readFileSync(lockfile)).digest("hex")

const packagesAreCurrent = () => {
  if (!existsSync(installed)) return false
  if (existsSync(stamp)) return readFileSync(stamp, "utf8") === digestOfLock()
  return statSync(installed).mtimeMs >= statSync(lockfile).mtimeMs
}

const ensurePackages = () => {
  if (packagesAreCurrent()) return true
  say("caisson: installing npm packages (npm ci)")
  const run = spawnSync("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  })
  if (run.status !== 0) {
    const why = run.error ? run.error.message : `npm ended with ${run.status ?? run.signal}`
    say(`caisson: the npm packages could not be installed (${why}); see npm's lines above, then run: npm ci`)
    return false
  }
  writeFileSync(stamp, digestOfLock())
  return true
}

const ensureBuild = () => {
  if (isDistCurrent()) return
  say("caisson: building dist")
  const outcome = build()
  if (outcome !== "built") say(`caisson: dist could not be built (${outcome}); running from src instead`)
}

/**
 * @param {{ forTests?: boolean }} [options]
 * @returns {string} the Node to run everything else with; ends the process where the host cannot run
 */
export const setup = (options = {}) => {
  if (!ensurePackages()) process.exit(hostCannotRun)
  const node = findNode()
  if (node === undefined) {
    say(`caisson: needs Node 24.15 or later and found ${process.version}; install it, or set CAISSON_NODE to one`)
    process.exit(hostCannotRun)
  }
  ensureBuild()
  if (!ensureSystemPackages(options)) process.exit(hostCannotRun)
  return node
}

if (isMain(import.meta.url)) setup()
