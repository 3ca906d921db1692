/**
 * Debian packages that real servers and clients come from.
 *
 * Guarantees: installs only what is missing, only as root, and starts no service while doing so; otherwise answers
 * with the reason, which a skipped test shows. `CAISSON_NO_APT=1` leaves installing out.
 */
import { spawnSync } from "node:child_process"
import { accessSync, constants, existsSync, rmSync, writeFileSync } from "node:fs"

const folders = ["/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/usr/lib/git-core"]

export const programAt = (name: string): string | undefined =>
  folders
    .map((folder) => `${folder}/${name}`)
    .find((path) => {
      try {
        accessSync(path, constants.X_OK)
        return true
      } catch {
        return false
      }
    })

const serviceGuard = "/usr/sbin/policy-rc.d"

/** Package scripts ask this file before they start a service; where there is none, one that says no stands in. */
function withoutStartingServices(work: () => void): void {
  const standsIn = !existsSync(serviceGuard)
  if (standsIn) writeFileSync(serviceGuard, "#!/bin/sh\nexit 101\n", { mode: 0o755 })
  try {
    work()
  } finally {
    if (standsIn) rmSync(serviceGuard, { force: true })
  }
}

const apt = (...args: readonly string[]): void =>
  void spawnSync("apt-get", ["-o", "DPkg::Lock::Timeout=300", "-q", "-y", "--no-install-recommends", ...args], {
    stdio: "ignore",
    timeout: 600_000,
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
  })

/** `program → package`; undefined when all are there in the end, else why not. */
export function ensurePrograms(programs: Readonly<Record<string, string>>): string | undefined {
  const missing = (): readonly string[] => [
    ...new Set(Object.entries(programs).flatMap(([program, name]) => (programAt(program) === undefined ? [name] : []))),
  ]
  if (missing().length === 0) return undefined
  const mayInstall =
    process.getuid?.() === 0 && programAt("apt-get") !== undefined && process.env["CAISSON_NO_APT"] !== "1"
  if (!mayInstall) return `not installed: sudo apt-get install -y ${missing().join(" ")}`
  withoutStartingServices(() => {
    apt("install", ...missing())
    if (missing().length === 0) return
    apt("update")
    apt("install", ...missing())
  })
  const left = missing()
  return left.length === 0
    ? undefined
    : `apt-get could not install ${left.join(" ")}; see: apt-get install -y ${left.join(" ")}`
}
