/**
 * What a manager says that it installed, by the notes it leaves beside the packages.
 *
 * Guarantees: bounded, and only for telling: nothing is trusted because of it. What cannot be read is left out.
 */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { layouts } from "./layout.ts"
import type { InstalledPackage, MethodSpec } from "./types.ts"

const MOST_BYTES = 8 * 1024 * 1024
const MOST_PACKAGES = 5_000
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+!_-]{0,127}$/

const npmPackages = (folder: string): readonly InstalledPackage[] => {
  const file = join(folder, layouts.npm.packages, ".package-lock.json")
  if (statSync(file).size > MOST_BYTES) return []
  const { packages } = JSON.parse(readFileSync(file, "utf8")) as { packages?: Record<string, { version?: unknown }> }
  return Object.entries(packages ?? {}).flatMap(([path, { version }]) => {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]
    return name !== undefined && typeof version === "string" && VERSION.test(version) ? [{ name, version }] : []
  })
}

const pipPackages = (folder: string): readonly InstalledPackage[] =>
  readdirSync(join(folder, layouts.pip.packages)).flatMap((entry) => {
    const [, name, version] = /^([A-Za-z0-9._]+)-([^-]+)\.dist-info$/.exec(entry) ?? []
    return name !== undefined && version !== undefined && VERSION.test(version) ? [{ name, version }] : []
  })

/** `"greet 1.0.0 (registry+https://…)" = ["greet"]` */
const cargoPackages = (folder: string): readonly InstalledPackage[] => {
  const file = join(folder, ".crates.toml")
  if (statSync(file).size > MOST_BYTES) return []
  return [...readFileSync(file, "utf8").matchAll(/^"([\w-]+) ([^ "]+) \(/gm)].flatMap(([, name = "", version = ""]) =>
    VERSION.test(version) ? [{ name, version }] : [],
  )
}

const BY_MANAGER: Readonly<Record<string, (folder: string) => readonly InstalledPackage[]>> = {
  npm: npmPackages,
  pip: pipPackages,
  cargo: cargoPackages,
}

/** Of a manager that leaves no notes, what was asked for, where that names one version. */
const asked = ({ packages }: Extract<MethodSpec, { packages: unknown }>): readonly InstalledPackage[] =>
  packages.flatMap(({ name, version }) => (version !== undefined && VERSION.test(version) ? [{ name, version }] : []))

export const installedPackages = (
  spec: Extract<MethodSpec, { packages: unknown }>,
  folder: string,
): readonly InstalledPackage[] => {
  try {
    return (BY_MANAGER[spec.source]?.(folder) ?? asked(spec)).slice(0, MOST_PACKAGES)
  } catch {
    return []
  }
}
