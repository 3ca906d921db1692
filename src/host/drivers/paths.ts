/**
 * A driver's `fs` globs, sorted by the place they speak of (C-11, C-50): workspace, home, scratch, or nowhere.
 *
 * Guarantees: `~` is the driver's home, `/workspace` and relative patterns are the workspace, `/tmp` is scratch; any
 * other absolute path belongs to the read-only base, so naming it grants nothing and is noted. Pure.
 */
import type { CliSandbox } from "../../manifest/types.ts"

export const inside = Object.freeze({
  workspace: "/workspace",
  home: "/home/tool",
  scratch: "/tmp",
  bundle: "/opt/driver",
  authority: "/run/caisson/egress-ca.pem",
  user: "tool",
})

type Place = { readonly where: "workspace" | "home"; readonly glob: string } | { readonly where: "scratch" | "base" }

const below = (pattern: string, folder: string): string | undefined => {
  if (pattern === folder) return "/"
  return pattern.startsWith(`${folder}/`) ? pattern.slice(folder.length + 1) || "/" : undefined
}

export const placeOf = (pattern: string): Place => {
  const home = below(pattern, "~") ?? below(pattern, inside.home)
  if (home !== undefined) return { where: "home", glob: home }
  if (!pattern.startsWith("/")) return { where: "workspace", glob: pattern }
  const workspace = below(pattern, inside.workspace)
  if (workspace !== undefined) return { where: "workspace", glob: workspace }
  return { where: below(pattern, inside.scratch) === undefined ? "base" : "scratch" }
}

const globsAt = (patterns: readonly string[], where: "workspace" | "home"): string[] =>
  patterns.map(placeOf).flatMap((place) => (place.where === where ? [(place as { glob: string }).glob] : []))

interface SealedPaths {
  readonly read: readonly string[]
  readonly write: readonly string[]
  readonly deny: readonly string[]
  /** home-relative globs that survive the call */
  readonly keep: readonly string[]
  readonly notes: readonly string[]
}

export const sealPaths = (fs: CliSandbox["fs"], statePaths: readonly string[]): SealedPaths => ({
  read: globsAt(fs.read, "workspace"),
  write: globsAt(fs.write, "workspace"),
  deny: globsAt(fs.deny, "workspace"),
  keep: [...new Set([...globsAt(statePaths, "home"), ...globsAt(fs.write, "home")])],
  notes: fs.write
    .filter((pattern) => placeOf(pattern).where === "base")
    .map((pattern) => `fs.write ${pattern} is outside the workspace and grants nothing`),
})
