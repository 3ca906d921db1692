/**
 * Whether a cli driver's program is on this machine, in the version it asks for.
 *
 * Guarantees: the author's order decides between the program that comes along and the system's; where neither is there,
 * the one in the driver's own package is taken, if that is installed. A version outside the
 * range is never available. Does not: run anything itself.
 */
import path from "node:path"
import type { CliSpec, DriverContract } from "../../../manifest/types.ts"
import { satisfies } from "../../../manifest/schema/version.ts"
import { installFix } from "../install-fix.ts"
import type { DriverAvailability, Surroundings } from "../kind.ts"
import { locateInstalled, packageOf } from "../installed.ts"
import type { InstallSpec } from "../../install/types.ts"
import { type Located, locateSystemProgram, locateVendoredProgram, systemFolders } from "../program.ts"

const locate = (driver: DriverContract, bin: string, folders: readonly string[]): Located => {
  const bundle = path.dirname(driver.source.file)
  const usable = driver.install.filter((method) => method.usable)
  const vendored = usable.find((method) => method.method === "vendored")
  const relative = bin.includes("/") && !path.isAbsolute(bin) ? bin : vendored?.path
  if (relative === undefined) return locateSystemProgram(bin, folders)
  const brought = (): Located => locateVendoredProgram(relative, bundle, folders)
  if (relative === bin) return brought()
  const vendoredFirst = usable[0]?.method === "vendored"
  const first = vendoredFirst ? brought() : locateSystemProgram(bin, folders)
  if (first.ok) return first
  const second = vendoredFirst ? locateSystemProgram(bin, folders) : brought()
  return second.ok ? second : first
}

/** What has to be installed for it: nothing where the program is on this machine, or comes along. */
export const packagesOf = (driver: DriverContract, { bin }: CliSpec): readonly InstallSpec[] => {
  const spec = locate(driver, bin, systemFolders).ok ? undefined : packageOf(driver)
  return spec === undefined ? [] : [spec]
}

export const available = async (
  contract: DriverContract,
  cli: CliSpec,
  here: Surroundings,
): Promise<DriverAvailability> => {
  const { folders, versions } = here
  const missing = (reason: string, fix: string): DriverAvailability => ({
    available: false,
    code: "tool_unavailable",
    reason,
    fix,
  })
  const atHand = locate(contract, cli.bin, folders)
  const spec = atHand.ok ? undefined : packageOf(contract)
  const located = spec === undefined ? atHand : await locateInstalled(contract, spec, cli.bin, here)
  if ("available" in located) return located
  if (!located.ok) return missing(located.reason, installFix(contract))
  const { program } = located
  const check = contract.versionCheck
  if (check === undefined) return { available: true, program }
  const { env, exec } = cli.sandbox
  const found = await versions(contract, { check, program, bin: cli.bin, env: env.set, children: exec.allow })
  if (!found.ok) return missing(found.reason, found.fix)
  const { version } = found
  if (satisfies(version, check.range)) return { available: true, version, program }
  return {
    available: false,
    code: "version_mismatch",
    reason: `version ${version} is installed, and the driver asks for ${check.range}`,
    fix: `${installFix(contract)}, in a version that satisfies ${check.range}`,
  }
}
