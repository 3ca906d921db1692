/**
 * Where things are in this clone: the Node to run with, whether `dist` is current, which entry file to start.
 *
 * Guarantees: plain JavaScript that runs on Node 18 and later, without any npm package; changes nothing.
 * Assumes: it lies in `scripts/` of the package.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readdirSync, statSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"

export const root = dirname(dirname(fileURLToPath(import.meta.url)))
export const stampOfBuild = join(root, "dist", ".built")

/** @param {string} line */
export const say = (line) => process.stderr.write(`${line}\n`)

/** The oldest Node that runs the host: `engines.node` in package.json. @param {string} version */
export const isNewEnough = (version) => {
  const [major = 0, minor = 0] = version.replace(/^v/, "").split(".").map(Number)
  return major > 24 || (major === 24 && minor >= 15)
}

/** @param {string} file */
const runs = (file) => {
  const probe = spawnSync(file, ["--version"], { encoding: "utf8", timeout: 10_000 })
  return probe.status === 0 && isNewEnough(probe.stdout.trim())
}

/** The pinned Node of this clone where it runs, else the user's own where it is new enough. */
export const findNode = () => {
  const pinned = join(root, "node_modules", ".bin", "node")
  if (existsSync(pinned) && runs(pinned)) return pinned
  if (isNewEnough(process.versions.node)) return process.execPath
  const named = process.env["CAISSON_NODE"]
  return named && runs(named) ? named : undefined
}

/** The latest modification below a folder, in ms; 0 where it is missing. @param {string} folder @returns {number} */
const newest = (folder) => {
  if (!existsSync(folder)) return 0
  let latest = statSync(folder).mtimeMs
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const path = join(folder, entry.name)
    const at = entry.isDirectory() ? newest(path) : statSync(path).mtimeMs
    if (at > latest) latest = at
  }
  return latest
}

export const isDistCurrent = () =>
  existsSync(stampOfBuild) && statSync(stampOfBuild).mtimeMs >= newest(join(root, "src"))

/** The file to start for a module such as `cli/tour`: built where `dist` is current, else source. @param {string} name */
export const entryOf = (name) => (isDistCurrent() ? join(root, "dist", `${name}.js`) : join(root, "src", `${name}.ts`))

/** @param {string} moduleUrl */
export const isMain = (moduleUrl) => process.argv[1] !== undefined && pathToFileURL(process.argv[1]).href === moduleUrl
