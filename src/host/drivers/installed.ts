/**
 * A driver's program from its own package of npm or pip, installed and frozen.
 *
 * Guarantees: it is the program that the package brings by that name, inside the layer when every link is followed; a
 * layer that was changed is no program. Does not: install anything.
 */
import path from "node:path"
import type { DriverContract } from "../../manifest/types.ts"
import { isReasonCode } from "../failure.ts"
import type { InstallSpec } from "../install/types.ts"
import { installFix } from "./install-fix.ts"
import type { DriverAvailability, Surroundings } from "./kind.ts"
import { type Located, locateVendoredProgram } from "./program.ts"

/** What npm or pip would bring, by the first of the driver's methods that is theirs. */
export const packageOf = ({ install }: DriverContract): InstallSpec | undefined => {
  for (const method of install) {
    if (!method.usable || (method.method !== "npm" && method.method !== "pip")) continue
    const { name, version } = method
    return { source: method.method, packages: [{ name, ...(version === undefined ? {} : { version }) }] }
  }
  return undefined
}

/** The program, or what is to be said of the driver without it. */
export const locateInstalled = async (
  contract: DriverContract,
  spec: InstallSpec,
  bin: string,
  { folders, installs, mayInstall }: Surroundings,
): Promise<Located | DriverAvailability> => {
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
  return { ok: true, program: { ...located.program, mount: layer.inside, env: layer.env } }
}
