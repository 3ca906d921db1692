/**
 * Whether a cli driver's program is on this machine, in the version it asks for.
 *
 * Guarantees: the author's order decides between the program that comes along and the system's; where neither is there, or
 * not in the right version, or the operator prefers that, the one in the driver's own layer is taken, if that is installed.
 * A version outside the range is never available. Does not: run anything itself.
 */
import path from "node:path"
import type { CliSpec, DriverContract } from "../../../manifest/types.ts"
import { satisfies } from "../../../manifest/schema/version.ts"
import { installFix } from "../program/install-fix.ts"
import type { DriverAvailability, Surroundings, WantedPackages } from "../kind.ts"
import { locateInstalled, methodsOf } from "../program/installed.ts"
import type { FrozenLayer, InstallSpec } from "../../install/types.ts"
import {
  type Located,
  locateSystemProgram,
  locateVendoredProgram,
  type Program,
  systemFolders,
} from "../program/program.ts"

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

/** What has to be installed for it: nothing where the program is on this machine, or comes along, and that is wanted. */
export const packagesOf = (
  driver: DriverContract,
  { bin }: CliSpec,
  { prefer, atHandToo = false }: WantedPackages,
): readonly InstallSpec[] => {
  const methods = methodsOf(driver, bin)
  if (methods === undefined || bin.includes("/")) return []
  if (atHandToo || (prefer === "layer" && methods.specs.length > 0)) return [methods]
  return locate(driver, bin, systemFolders).ok ? [] : [methods]
}

type Found = { readonly program: Program; readonly layer?: FrozenLayer } | DriverAvailability

const missing = (reason: string, fix: string): DriverAvailability => ({
  available: false,
  code: "tool_unavailable",
  reason,
  fix,
})

/** In the version that the driver asks for, or not. */
const checked = async (
  contract: DriverContract,
  cli: CliSpec,
  found: Found,
  { versions }: Surroundings,
): Promise<DriverAvailability> => {
  if ("available" in found) return found
  const { program, layer } = found
  const there = { program, ...(layer === undefined ? {} : { layers: [layer] }) }
  const check = contract.versionCheck
  if (check === undefined) return { available: true, ...there }
  const { env, exec } = cli.sandbox
  const said = await versions(contract, { check, program, bin: cli.bin, env: env.set, children: exec.allow })
  if (!said.ok) return missing(said.reason, said.fix)
  const { version } = said
  if (satisfies(version, check.range)) return { available: true, version, ...there }
  const install = layer === undefined ? installFix(contract) : `run \`caisson install ${contract.id}\``
  return {
    available: false,
    code: "version_mismatch",
    reason: `version ${version} is installed, and the driver asks for ${check.range}`,
    fix: `${install}, in a version that satisfies ${check.range}`,
  }
}

export const available = async (
  contract: DriverContract,
  cli: CliSpec,
  here: Surroundings,
): Promise<DriverAvailability> => {
  const atHand = locate(contract, cli.bin, here.folders)
  const methods = cli.bin.includes("/") ? undefined : methodsOf(contract, cli.bin)
  const installed = async (): Promise<DriverAvailability | undefined> => {
    if (methods === undefined || methods.specs.length === 0) return undefined
    const located = await locateInstalled(contract, methods, cli.bin, here)
    if ("available" in located) return located
    return await checked(contract, cli, located.ok ? located : missing(located.reason, installFix(contract)), here)
  }
  if (here.prefer === "layer") {
    const layered = await installed()
    if (layered !== undefined) return layered
  }
  if (!atHand.ok) {
    const layered = await installed()
    if (layered === undefined) return missing(atHand.reason, installFix(contract))
    if (layered.available || layered.code !== "tool_unavailable") return layered
    return { ...layered, reason: `${atHand.reason}, and ${layered.reason}` }
  }
  const found = await checked(contract, cli, atHand, here)
  if (found.available || found.code !== "version_mismatch") return found
  // This machine's own is of another version: the driver's may be installed beside it.
  const layered = await installed()
  return layered?.available === true ? layered : layered?.code === "version_mismatch" ? layered : found
}
