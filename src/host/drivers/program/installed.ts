/**
 * A driver's program from one of its install methods, installed and frozen.
 *
 * Guarantees: it is the program that the method brings by that name, inside the layer when every link is followed; a
 * layer that was changed is no program. Methods keep the author's order; those that this host does not have are named
 * with the reason. Does not: install anything.
 */
import path from "node:path"
import type { DriverContract, InstallMethod } from "../../../manifest/types.ts"
import { isReasonCode } from "../../failure.ts"
import type { FirstOf, FrozenLayer, MethodSpec } from "../../install/types.ts"
import { installFix } from "./install-fix.ts"
import type { DriverAvailability, Surroundings } from "../kind.ts"
import { type Located, locateVendoredProgram } from "./program.ts"

const ELSEWHERE: Readonly<Record<string, string>> = {
  brew: "Homebrew is not used here: it installs into the system it runs on",
  dnf: "dnf is for Fedora and its kin; this host installs Debian packages, by apt",
  pacman: "pacman is for Arch Linux; this host installs Debian packages, by apt",
  choco: "Chocolatey is for Windows",
  scoop: "Scoop is for Windows",
}

const specOf = (method: Extract<InstallMethod, { usable: true }>, bin: string): MethodSpec | string => {
  switch (method.method) {
    case "npm":
    case "pip":
    case "cargo":
    case "go":
    case "apt": {
      const { name, version } = method
      return { source: method.method, packages: [{ name, ...(version === undefined ? {} : { version }) }] }
    }
    case "curl":
    case "download": {
      const program = method.method === "curl" ? path.basename(bin) : path.posix.normalize(method.extractBin)
      const { url, sha256 } = method
      return { source: method.method, url, program, ...(sha256 === undefined ? {} : { sha256 }) }
    }
    case "vendored":
      return `\`${method.path}\` is not in the driver's folder, or cannot be run`
    default:
      return ELSEWHERE[method.method] ?? "it is not possible here"
  }
}

/** All that the driver says of how to get its program; undefined where it says nothing. */
export const methodsOf = ({ install, id, major }: DriverContract, bin: string): FirstOf | undefined => {
  if (install.length === 0) return undefined
  const specs: MethodSpec[] = []
  const passed: FirstOf["passed"][number][] = []
  for (const method of install) {
    const spec = method.usable ? specOf(method, bin) : method.reason
    if (typeof spec === "string") passed.push({ method: method.method, reason: spec })
    else specs.push(spec)
  }
  return { source: "first-of", driver: `${id}@${major}`, specs, passed }
}

/** The program with the layer that it is in, or what is to be said of the driver without it. */
export const locateInstalled = async (
  contract: DriverContract,
  spec: FirstOf,
  bin: string,
  { folders, installs, mayInstall }: Surroundings,
): Promise<(Located & { readonly layer?: FrozenLayer }) | DriverAvailability> => {
  const found = await installs.find(spec)
  if (!found.ok) {
    const { code, message, hint = installFix(contract) } = found
    if (found.details["installed"] === false && mayInstall) return { available: true, install: [spec] }
    return {
      available: false,
      code: isReasonCode(code) ? code : "install_failed",
      reason: message,
      fix: hint.replace("DRIVER", contract.id),
    }
  }
  const layer = found.value
  const file = layer.bin(path.basename(bin))
  if (file === undefined) return { ok: false, reason: `its package brings no program \`${path.basename(bin)}\`` }
  const located = locateVendoredProgram(path.relative(layer.folder, file.host), layer.folder, folders)
  if (!located.ok) return located
  return { ok: true, layer, program: { ...located.program, mount: layer.inside, env: layer.env } }
}
