/** The words of the install room: what is asked for, what is built, and the frozen layer that is handed out. */
import type { CodeSource } from "../../manifest/types.ts"
import type { EgressEntry } from "../../manifest/values/egress-entry.ts"
import type { Executables } from "../../sandbox/backend.ts"
import type { WriteSet } from "../../sandbox/effects/types.ts"
import type { OperatorConfig } from "../config/types.ts"
import type { Failure } from "../failure.ts"

export interface PackageRequest {
  /** as its registry knows it */
  readonly name: string
  /** a range in the words of its own manager (`^1.2` for npm, `>=1.2,<2` for pip); absent: the newest */
  readonly version?: string
}

/** What one install method asks for. */
export type MethodSpec =
  | { readonly source: "npm" | "pip" | "cargo" | "go" | "apt"; readonly packages: readonly PackageRequest[] }
  /** a folder that comes with the driver: absolute, as it is on this machine */
  | { readonly source: "local"; readonly folder: string }
  /** files that a driver is composed of */
  | { readonly source: "code"; readonly sources: readonly CodeSource[] }
  | FetchedSpec

/** `download`: an archive with the program at that path, or the program itself. `curl`: a script that brings it. */
export interface FetchedSpec {
  readonly source: "download" | "curl"
  /** canonical, https */
  readonly url: string
  /** absent: nobody vouches for what comes, and the operator must have allowed that */
  readonly sha256?: string
  /** a path in the archive; of a script, a program's name */
  readonly program: string
}

/** A driver's methods in the author's order: the first that works is taken. */
export interface FirstOf {
  readonly source: "first-of"
  /** whose they are: one process installs for it at a time */
  readonly driver: string
  readonly specs: readonly MethodSpec[]
  /** methods that cannot be tried here, and why */
  readonly passed: readonly { readonly method: string; readonly reason: string }[]
}

export type InstallSpec = MethodSpec | FirstOf
export type InstallSource = MethodSpec["source"]

/** `final`: no other method may be tried either, since what came was not what the author named. */
export interface InstallFailure extends Failure {
  readonly final?: true
}
export type InstallAnswer<T> = { readonly ok: true; readonly value: T } | InstallFailure

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
  /** what a program inside needs to find its parts: `PYTHONPATH`, `LD_LIBRARY_PATH`; nothing for npm, which looks beside itself */
  readonly env: Readonly<Record<string, string>>
  /** all that was installed, what was asked for and what that needs, as far as its manager tells */
  readonly packages: readonly InstalledPackage[]
  /** a program that a package brings, links not followed; undefined where there is none */
  bin(name: string): LayerPath | undefined
  /** the folder of a package: what `node_modules` calls it; for pip the folder of all packages; for what came along the folder itself */
  entry(name: string): LayerPath | undefined
}

/** What is told while it happens. */
export type InstallProgress =
  | { readonly phase: "waiting"; readonly what: string }
  | { readonly phase: "building"; readonly what: string }
  /** so many files came from the registry so far */
  | { readonly phase: "fetching"; readonly what: string; readonly fetched: number }
  | { readonly phase: "downloading"; readonly what: string; readonly bytes: number; readonly total?: number }
  | { readonly phase: "unpacking"; readonly what: string }
  /** a method did not work, and the next one is tried */
  | { readonly phase: "passing over"; readonly what: string; readonly reason: string }
  | { readonly phase: "freezing"; readonly what: string }
  | { readonly phase: "done"; readonly what: string; readonly digest: string }

export interface InstallOptions {
  readonly signal?: AbortSignal
  readonly tell?: (progress: InstallProgress) => void
}

export interface EnsureOptions extends InstallOptions {
  /** install anew what is there and was changed; else that is refused */
  readonly repair?: boolean
  /** install anew whatever is there: a registry may have something newer for a range */
  readonly anew?: boolean
}

/** One run of a package manager or another part of an installation, as sealed as a call. */
export interface BuildRequest {
  /** what runs, for messages: `npm`, `the unpacker` */
  readonly name: string
  readonly executables: Executables
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** empty: no network at all */
  readonly egress: readonly EgressEntry[]
  /** `/workspace` inside; what is written there is kept where `accept` has nothing against it */
  readonly folder: string
  /** path inside, below `/run/caisson/` → content */
  readonly files?: Readonly<Record<string, Uint8Array>>
  /** `$HOME` inside, where it is to be another one than a tool's */
  readonly home?: string
  /** may it start what it writes to /tmp: scripts of crates, and what those build */
  readonly startsScratch?: true
  /** what it reads from its input; where that turns out to be something else than its digest says, nothing is kept */
  readonly input?: { readonly file: string; readonly sha256: string }
  /** what is wrong with what it wrote */
  accept(writes: WriteSet): string | undefined
  /** what its last words mean, in words for people; undefined where they say nothing of note */
  explain?(said: string): { readonly message: string; readonly final?: true } | undefined
  /** each line of what it prints */
  line?(text: string): void
}
/** Run it; what it wrote is in the folder, or why nothing is. */
export type Build = (request: BuildRequest, signal: AbortSignal) => Promise<InstallAnswer<undefined>>

/** One question to a web server, by a way that leads to these hosts alone. */
export interface AskRequest {
  readonly url: URL
  readonly headers: Readonly<Record<string, string>>
  readonly egress: readonly EgressEntry[]
}
export interface WebAnswer extends AsyncDisposable {
  readonly status: number
  /** by lower-case names; of several with one name, the first */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** breaks off with an error where the answer does */
  readonly body: AsyncIterable<Uint8Array>
}
export type Ask = (request: AskRequest, signal: AbortSignal) => Promise<InstallAnswer<WebAnswer>>

/** A request whose layer can be looked up and made. */
export interface Known {
  readonly key: string
  /** for people: `cowsay@^1.6` */
  readonly what: string
  /** Fill the empty folder; answers what is in it, as far as that is known. */
  fill(folder: string, options: FillOptions): Promise<InstallAnswer<readonly InstalledPackage[]>>
}
export interface FillOptions {
  readonly signal: AbortSignal
  readonly tell: (progress: InstallProgress) => void
}

/** What methods have to work with. */
export interface MethodTools {
  readonly data: string
  readonly config: OperatorConfig
  readonly build: Build
  readonly ask: Ask
}
