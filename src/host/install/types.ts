/** The words of the install room: what is asked for, what is built, and the frozen layer that is handed out. */
import type { EgressEntry } from "../../manifest/values/egress-entry.ts"
import type { Executables } from "../../sandbox/backend.ts"
import type { WriteSet } from "../../sandbox/effects/types.ts"
import type { Failure } from "../failure.ts"

export interface PackageRequest {
  /** as its registry knows it */
  readonly name: string
  /** a range in the words of its own manager (`^1.2` for npm, `>=1.2,<2` for pip); absent: the newest */
  readonly version?: string
}

export type InstallSpec =
  | { readonly source: "npm" | "pip"; readonly packages: readonly PackageRequest[] }
  /** a folder that comes with the driver: absolute, as it is on this machine */
  | { readonly source: "local"; readonly folder: string }

export type InstallSource = InstallSpec["source"]

export type InstallAnswer<T> = { readonly ok: true; readonly value: T } | Failure

/** A file of a layer, by its path on this machine and inside a sandbox. */
export interface LayerPath {
  readonly host: string
  readonly inside: string
}

export interface InstalledPackage {
  readonly name: string
  readonly version: string
}

/**
 * A read-only folder of installed packages. It was as its digest says when it was handed out; mount it by `bundles` in
 * `executables.bundles`, of a sandbox that is made now, and ask again for the next one.
 */
export interface FrozenLayer {
  /** `sha256:…` of all names, kinds, executable bits and contents */
  readonly digest: string
  readonly source: InstallSource
  /** absolute, on this machine */
  readonly folder: string
  /** where it is seen in a sandbox */
  readonly inside: string
  /** `{ [folder]: inside }` */
  readonly bundles: Readonly<Record<string, string>>
  /** what a program inside needs to find the packages: `PYTHONPATH`; nothing for npm, whose loader looks beside itself */
  readonly env: Readonly<Record<string, string>>
  /** all that was installed, what was asked for and what that needs; empty for `local` */
  readonly packages: readonly InstalledPackage[]
  /** a program that a package brings, links not followed; undefined where there is none */
  bin(name: string): LayerPath | undefined
  /** the folder of a package: what `node_modules` calls it; for pip the folder of all packages; for local the folder itself */
  entry(name: string): LayerPath | undefined
}

/** What is told while it happens. */
export type InstallProgress =
  | { readonly phase: "waiting"; readonly what: string }
  | { readonly phase: "building"; readonly what: string }
  /** so many files came from the registry so far */
  | { readonly phase: "fetching"; readonly what: string; readonly fetched: number }
  | { readonly phase: "freezing"; readonly what: string }
  | { readonly phase: "done"; readonly what: string; readonly digest: string }

export interface InstallOptions {
  readonly signal?: AbortSignal
  readonly tell?: (progress: InstallProgress) => void
}

/** One run of a package manager, as sealed as a call. */
export interface BuildRequest {
  readonly executables: Executables
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly egress: readonly EgressEntry[]
  /** an empty folder, `/workspace` inside; what is written there is kept where `accept` has nothing against it */
  readonly folder: string
  /** what is wrong with what it wrote */
  accept(writes: WriteSet): string | undefined
  /** each line of what it prints */
  line(text: string): void
}
/** Run it; what it wrote is in the folder, or why nothing is. */
export type Build = (request: BuildRequest, signal: AbortSignal) => Promise<InstallAnswer<undefined>>
