/**
 * Whether a cli driver's program is on this machine, in the version it asks for.
 *
 * Guarantees: the author's order decides between the program that comes along and the system's; a version outside the
 * range is never available. Does not: run anything itself.
 */
import path from "node:path"
import type { CliSpec, DriverContract } from "../../../manifest/types.ts"
import { satisfies } from "../../../manifest/schema/version.ts"
import { installFix } from "../install-fix.ts"
import type { DriverAvailability, Surroundings } from "../kind.ts"
import { type Located, locateSystemProgram, locateVendoredProgram } from "../program.ts"

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

export const available = async (
  contract: DriverContract,
  cli: CliSpec,
  { folders, versions }: Surroundings,
): Promise<DriverAvailability> => {
  const missing = (reason: string, fix: string): DriverAvailability => ({
    available: false,
    code: "tool_unavailable",
    reason,
    fix,
  })
  const located = locate(contract, cli.bin, folders)
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
