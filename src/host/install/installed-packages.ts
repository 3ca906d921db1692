/**
 * What a manager says that it installed, by the notes it leaves beside the packages.
 *
 * Guarantees: bounded, and only for telling: nothing is trusted because of it. What cannot be read is left out. It is looked for in
 * the build's own folder, by descriptor and through no link: a package's build script may have put anything there.
 */
import { closeSync, readSync } from "node:fs"
import { namesIn, openFile, openRoot, withDir } from "../../sandbox/effects/beneath.ts"
import { toBuffer, fromBuffer } from "../../sandbox/effects/names.ts"
import { layouts } from "./layout.ts"
import type { InstalledPackage, MethodSpec } from "./types.ts"

const MOST_BYTES = 8 * 1024 * 1024
const MOST_PACKAGES = 5_000
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+!_-]{0,127}$/

const pathOf = (path: string) => fromBuffer(Buffer.from(path))

/** Throws where it is no plain file of at most so many bytes. */
const noteIn = (root: number, path: string): string => {
  const fd = openFile(root, pathOf(path))
  try {
    const pieces: Buffer[] = []
    let filled = 0
    for (let got = -1; got !== 0; filled += got) {
      const piece = Buffer.alloc(65_536)
      got = readSync(fd, piece, 0, piece.length, filled)
      if (filled + got > MOST_BYTES) throw new RangeError(`${path} is too large`)
      pieces.push(piece.subarray(0, got))
    }
    return Buffer.concat(pieces).toString("utf8")
  } finally {
    closeSync(fd)
  }
}

const npmPackages = (root: number): readonly InstalledPackage[] => {
  const { packages } = JSON.parse(noteIn(root, `${layouts.npm.packages}/.package-lock.json`)) as {
    packages?: Record<string, { version?: unknown }>
  }
  return Object.entries(packages ?? {}).flatMap(([path, { version }]) => {
    const name = /^node_modules\/((?:@[^/]+\/)?[^/]+)$/.exec(path)?.[1]
    return name !== undefined && typeof version === "string" && VERSION.test(version) ? [{ name, version }] : []
  })
}

const pipPackages = (root: number): readonly InstalledPackage[] =>
  withDir(root, pathOf(layouts.pip.packages), namesIn).flatMap((bytes) => {
    const entry = toBuffer(bytes).toString("utf8")
    const [, name, version] = /^([A-Za-z0-9._]+)-([^-]+)\.dist-info$/.exec(entry) ?? []
    return name !== undefined && version !== undefined && VERSION.test(version) ? [{ name, version }] : []
  })

/** `"greet 1.0.0 (registry+https://…)" = ["greet"]` */
const cargoPackages = (root: number): readonly InstalledPackage[] =>
  [...noteIn(root, ".crates.toml").matchAll(/^"([\w-]+) ([^ "]+) \(/gm)].flatMap(([, name = "", version = ""]) =>
    VERSION.test(version) ? [{ name, version }] : [],
  )

const BY_MANAGER: Readonly<Record<string, (root: number) => readonly InstalledPackage[]>> = {
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
  let root: number | undefined
  try {
    root = openRoot(folder)
    return (BY_MANAGER[spec.source]?.(root) ?? asked(spec)).slice(0, MOST_PACKAGES)
  } catch {
    return []
  } finally {
    if (root !== undefined) closeSync(root)
  }
}
