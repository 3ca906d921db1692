/**
 * All the set-up a fresh clone needs: npm packages, the Node to run with, `dist`, system packages.
 *
 * Guarantees: idempotent; does only what is missing and says so on stderr; plain JavaScript for Node 18 and later.
 * Where something that the host cannot do without stays missing, it ends with exit code 5 and one line that says
 * what to do.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "./build.mjs"
import { findNode, isDistCurrent, isMain, root, say } from "./house.mjs"
import { completePlatformPackages } from "./platform-packages.mjs"
import { ensureSystemPackages } from "./system-packages.mjs"

const hostCannotRun = 5
const lockfile = join(root, "package-lock.json")
const stamp = join(root, "node_modules", ".caisson-lock-digest")
const installed = join(root, "node_modules", ".package-lock.json")

const digestOfLock = () => createHash("sha256").update(readFileSync(lockfile)).digest("hex")

/** @param {string} file @returns {Record<string, { version?: string, link?: boolean, optional?: boolean, peer?: boolean }>} */
const packagesOf = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8")).packages ?? {}
  } catch {
    return {}
  }
}
/** Whether npm's record of what it laid is what the lock file says; of what npm may leave out, see platform-packages. */
const packagesAreCurrent = () => {
  if (!existsSync(installed)) return false
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === digestOfLock()) return true
  const laid = packagesOf(installed)
  return Object.entries(packagesOf(lockfile)).every(
    ([path, { version, link, optional, peer }]) =>
      !path.startsWith("node_modules/") || link || optional || peer || laid[path]?.version === version,
  )
}

/** Without scripts: `dist` is built below, with the pinned Node, and no dependency needs any. */
const install = () => {
  say("caisson: installing npm packages (npm ci)")
  const run = spawnSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"], {
    cwd: root,
    stdio: ["ignore", 2, 2],
  })
  if (run.status === 0) return true
  const why = run.error ? run.error.message : `npm ended with ${run.status ?? run.signal}`
  say(`caisson: the npm packages could not be installed (${why}); see npm's lines above, then run: npm ci`)
  return false
}

/** Native parts that are there and cannot be loaded say so here, not in the middle of something. @param {string} node */
const loads = (node) => {
  const names = ["koffi", "vite"].filter((name) => existsSync(join(root, "node_modules", name)))
  const script = `for (const name of ${JSON.stringify(names)}) await import(name)`
  const run = spawnSync(node, ["--input-type=module", "-e", script], { cwd: root, encoding: "utf8" })
  if (run.status === 0) return true
  const [why] = /^\w*Error.*$/m.exec(run.stderr) ?? [run.stderr.trim().split("\n").pop()]
  say(`caisson: the installed packages do not load (${why}); run: rm -r node_modules && npm ci`)
  return false
}

/** @returns {string | undefined} the Node to run with */
const ensurePackages = () => {
  const isCurrent = packagesAreCurrent()
  if (!isCurrent && !install()) return undefined
  if (!completePlatformPackages(root)) return undefined
  const node = findNode()
  if (node === undefined) {
    say(`caisson: needs Node 24.15 or later and found ${process.version}; install it, or set CAISSON_NODE to one`)
    return undefined
  }
  if (isCurrent && existsSync(stamp) && readFileSync(stamp, "utf8") === digestOfLock()) return node
  if (!loads(node)) return undefined
  try {
    writeFileSync(stamp, digestOfLock())
  } catch {
    // Another user's clone: looked at anew each time.
  }
  return node
}

/** A test run has no use for sources that cannot be built; a user's call still runs from them. @param {boolean} forTests */
const ensureBuild = (forTests) => {
  if (isDistCurrent()) return
  say("caisson: building dist")
  const outcome = build()
  if (outcome === "failed" && forTests) {
    say("caisson: dist could not be built; the messages above say why (`npm run typecheck` gives them again)")
    process.exit(1)
  }
  if (outcome !== "built") say(`caisson: dist could not be built (${outcome}); running from src instead`)
}

/**
 * @param {{ forTests?: boolean, forSealedTests?: boolean, packagesOnly?: boolean }} [options] `packagesOnly`: neither `dist` nor system packages
 * @returns {string} the Node to run everything else with; ends the process where the host cannot run
 */
export const setup = (options = {}) => {
  const node = ensurePackages()
  if (node === undefined) process.exit(hostCannotRun)
  if (options.packagesOnly) return node
  ensureBuild(options.forTests === true)
  if (!ensureSystemPackages(options)) process.exit(hostCannotRun)
  return node
}

if (isMain(import.meta.url)) setup()
