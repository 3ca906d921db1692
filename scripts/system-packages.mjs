/**
 * The Debian packages behind the host and its bundled catalogue: which are missing, and how they get here.
 *
 * Guarantees: installs only what is missing, only as root, only by apt-get and without a question; otherwise says in
 * one line what to install. A missing program of the catalogue never stops anything: its tools are shown as
 * unavailable. Missing bubblewrap, util-linux or perl does: nothing can be sealed without them.
 * Does not: upgrade, remove or configure anything, but that a PostgreSQL that tests need comes without a server that runs.
 */
import { spawnSync } from "node:child_process"
import { accessSync, constants, mkdirSync, writeFileSync } from "node:fs"
import { homedir } from "node:os"
import { delimiter, join } from "node:path"
import { say } from "./house.mjs"

/** Program → package. */
export const needed = { bwrap: "bubblewrap", unshare: "util-linux", setpriv: "util-linux", perl: "perl-base" }
export const catalogue = {
  jq: "jq",
  git: "git",
  rg: "ripgrep",
  sqlite3: "sqlite3",
  curl: "curl",
  pandoc: "pandoc",
  convert: "imagemagick",
  file: "file",
  patch: "patch",
  tar: "tar",
  diff: "diffutils",
}
/** What the tests run inside sandboxes besides. */
export const testPrograms = { python3: "python3" }
/** And those that take long to fetch, which only whole runs are worth. */
export const largeTestPrograms = { chromium: "chromium", pg_createcluster: "postgresql" }

/** What lies in a home or below /usr/local came from elsewhere and is not what the packages bring. */
const isForeign = (/** @type {string} */ folder) =>
  folder.startsWith("/usr/local/") || folder.startsWith(`${homedir()}/`)
const folders = (process.env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "" && !isForeign(folder))

/** @param {string} program */
const isThere = (program) =>
  folders.some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK)
      return true
    } catch {
      return false
    }
  })

/** @param {Record<string, string>} programs */
export const missingPackages = (programs) => [
  ...new Set(
    Object.entries(programs)
      .filter(([program]) => !isThere(program))
      .map(([, name]) => name),
  ),
]

/** @param {string[]} args */
const apt = (args) =>
  spawnSync("apt-get", ["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3", "-q", ...args], {
    stdio: ["ignore", 2, 2],
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  }).status === 0

/** Debian's package would make a cluster and start it; tests have their own. */
const withoutServer = () => {
  const folder = "/etc/postgresql-common/createcluster.d"
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "caisson.conf"), "create_main_cluster = false\n")
}

/** @param {string[]} names */
const install = (names) => {
  if (names.length === 0) return
  if (names.includes("postgresql")) withoutServer()
  say(`caisson: installing ${names.join(" ")}`)
  const options = ["install", "-y", "--no-install-recommends"]
  if (apt([...options, ...names]) || names.length === 1) return
  for (const name of names) apt([...options, name])
}

/**
 * @param {{ forTests?: boolean, forSealedTests?: boolean }} [options] `forSealedTests`: what is large too
 * @returns {boolean} whether the host can run
 */
export const ensureSystemPackages = ({ forTests = false, forSealedTests = false } = {}) => {
  const optional = {
    ...catalogue,
    ...(forTests ? testPrograms : {}),
    ...(forSealedTests ? largeTestPrograms : {}),
  }
  if (process.platform !== "linux") {
    say(`caisson: sealed calls need Linux; this is ${process.platform}`)
    return false
  }
  const mayInstall = process.getuid?.() === 0 && isThere("apt-get") && process.env["CAISSON_NO_APT"] !== "1"
  if (mayInstall && missingPackages({ ...needed, ...optional }).length > 0) {
    say("caisson: some system packages are missing; asking apt-get for them (CAISSON_NO_APT=1 leaves this out)")
    apt(["update"])
    install(missingPackages(needed))
    install(missingPackages(optional))
  }
  const stillNeeded = missingPackages(needed)
  const stillOptional = missingPackages(optional)
  const sudo = process.getuid?.() === 0 ? "" : "sudo "
  if (stillNeeded.length > 0) {
    const all = [...stillNeeded, ...stillOptional].join(" ")
    say(`caisson: cannot seal calls without ${stillNeeded.join(" ")}; run: ${sudo}apt-get install -y ${all}`)
    return false
  }
  if (stillOptional.length > 0)
    say(
      `caisson: some ${forTests ? "tests and " : ""}catalogue tools stay unavailable until you run: ${sudo}apt-get install -y ${stillOptional.join(" ")}`,
    )
  return true
}
