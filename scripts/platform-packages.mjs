/**
 * The packages that exist once per platform (Node itself, native parts of libraries and tools): which of them the lock
 * file wants here, which npm left out, and how they get here all the same.
 *
 * npm takes these for optional and leaves one out without a word: because the Node that happens to run npm is older than
 * the package asks for (though everything here is run with the pinned one), or because of its own faults with optional
 * packages. So what is there is compared with the lock file after each installation, and what is not is fetched.
 *
 * Guarantees: exactly the locked version with exactly the locked digest is laid, or nothing.
 * Assumes: `npm` (for registry, proxy and cache settings) and `tar`.
 */
import { spawnSync } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, symlinkSync } from "node:fs"
import { dirname, join } from "node:path"
import { say } from "./house.mjs"

/** @typedef {{ platform: string, arch: string, libc: string | undefined }} Machine */
/** @typedef {{ path: string, name: string, version: string, integrity: string }} Wanted */

/** @returns {Machine} */
export const thisMachine = () => {
  const report = /** @type {{ header?: { glibcVersionRuntime?: string } } | undefined} */ (process.report?.getReport())
  const libc = process.platform !== "linux" ? undefined : report?.header?.glibcVersionRuntime ? "glibc" : "musl"
  return { platform: process.platform, arch: process.arch, libc }
}

/** npm's own rule: a list of names, or of names that do not fit. @param {unknown} listed @param {string | undefined} own */
const fits = (listed, own) => {
  if (listed === undefined) return true
  const names = [listed].flat().map(String)
  const refused = names.filter((name) => name.startsWith("!")).map((name) => name.slice(1))
  return refused.length > 0 ? !refused.includes(own ?? "") : own === undefined || names.includes(own)
}

/**
 * What the lock file wants on a machine, given which of its packages are there.
 *
 * @param {{ packages?: Record<string, any> }} lock
 * @param {Machine} machine
 * @param {(path: string) => boolean} isThere
 * @returns {Wanted[]}
 */
export const wantedHere = (lock, machine, isThere) => {
  const packages = Object.entries(lock.packages ?? {})
  const asked = new Set(
    packages.filter(([path]) => isThere(path)).flatMap(([, entry]) => Object.keys(entry.optionalDependencies ?? {})),
  )
  return packages.flatMap(([path, entry]) => {
    const isOfPlatform = entry.os !== undefined && entry.cpu !== undefined
    const name = path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length)
    const isForHere =
      fits(entry.os, machine.platform) && fits(entry.cpu, machine.arch) && fits(entry.libc, machine.libc)
    return isOfPlatform && isForHere && entry.optional && asked.has(name)
      ? [{ path, name: entry.name ?? name, version: entry.version, integrity: entry.integrity }]
      : []
  })
}

/** @param {string} file */
const jsonOf = (file) => {
  try {
    return JSON.parse(readFileSync(file, "utf8"))
  } catch {
    return undefined
  }
}

/** What is wanted here and not there in the locked version. @param {string} root @param {Machine} [machine] */
export const missingHere = (root, machine = thisMachine()) => {
  const lock = jsonOf(join(root, "package-lock.json")) ?? {}
  const isThere = (/** @type {string} */ path) => existsSync(join(root, path, "package.json"))
  return wantedHere(lock, machine, isThere).filter(
    ({ path, version }) => jsonOf(join(root, path, "package.json"))?.version !== version,
  )
}

/** @param {Buffer} bytes @param {string} integrity */
const isIntact = (bytes, integrity) => {
  const [algorithm = "", digest] = integrity.split("-")
  return ["sha512", "sha256"].includes(algorithm) && createHash(algorithm).update(bytes).digest("base64") === digest
}

/** @param {string} root @param {Wanted} wanted @returns {string | undefined} why not */
const lay = (root, { path, name, version, integrity }) => {
  const modules = join(root, "node_modules")
  const scratch = mkdtempSync(join(modules, ".caisson-fetch-"))
  try {
    const spec = `${name}@${version}`
    const packed = spawnSync(
      "npm",
      ["pack", spec, "--ignore-scripts", "--pack-destination", scratch, "--loglevel=error"],
      {
        cwd: root,
        stdio: ["ignore", "ignore", 2],
      },
    )
    const [file] = readdirSync(scratch)
    if (packed.status !== 0 || file === undefined)
      return `npm pack ${spec} ended with ${packed.status ?? packed.signal}`
    if (!isIntact(readFileSync(join(scratch, file)), integrity)) return `${spec} is not what package-lock.json says`
    const fresh = join(scratch, "package")
    mkdirSync(fresh)
    const unpacked = spawnSync(
      "tar",
      ["-xzf", join(scratch, file), "-C", fresh, "--strip-components=1", "--no-same-owner"],
      {
        stdio: ["ignore", "ignore", 2],
      },
    )
    if (unpacked.status !== 0) return `${spec} could not be unpacked`
    mkdirSync(dirname(join(root, path)), { recursive: true })
    rmSync(join(root, path), { recursive: true, force: true })
    renameSync(fresh, join(root, path))
    return undefined
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

/** Some npms drop the link with the other platform's package that shares its name. @param {string} root @param {string} arch */
const linkNode = (root, arch) => {
  const link = join(root, "node_modules", ".bin", "node")
  const target = join("..", `node-linux-${arch}`, "bin", "node")
  if (existsSync(link) || !existsSync(join(dirname(link), target))) return
  mkdirSync(dirname(link), { recursive: true })
  rmSync(link, { force: true })
  symlinkSync(target, link)
}

/** Lays what npm left out. @param {string} root @returns {boolean} whether all of it is there now */
export const completePlatformPackages = (root) => {
  const missing = missingHere(root)
  if (missing.length > 0)
    say(
      `caisson: npm left out ${missing.map(({ name }) => name).join(", ")}; fetching ${missing.length === 1 ? "it" : "them"}`,
    )
  for (const wanted of missing) {
    let why
    try {
      why = lay(root, wanted)
    } catch (error) {
      why = /** @type {Error} */ (error).message
    }
    if (why !== undefined) {
      say(`caisson: ${wanted.name}@${wanted.version} could not be installed: ${why}`)
      return false
    }
  }
  try {
    linkNode(root, process.arch)
  } catch {
    // A convenience for people: nothing here depends on it.
  }
  return true
}
