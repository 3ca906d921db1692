/**
 * From a request for packages to a frozen layer: found where it was installed before, else built, once.
 *
 * Guarantees: `find` builds nothing and hands out only what is as it was installed. `ensure` builds in a sandbox that
 * reaches the registry alone; of processes that want the same at once, one builds and the others wait for it. A build that
 * fails, is cancelled or killed leaves nothing that could be taken for a layer, and the next one clears it away.
 * Assumes: a registry gives the same bytes for a version, within a build; what was built once is kept until pruned.
 * Does not: update. A range is settled when it is installed.
 */
import { lstatSync, mkdirSync, readdirSync, realpathSync, statSync } from "node:fs"
import { createHash } from "node:crypto"
import { isAbsolute, join } from "node:path"
import { installBuildsFolder, installLocksFolder } from "../../data-folder/paths.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import type { WriteSet } from "../../sandbox/effects/types.ts"
import type { OperatorConfig } from "../config/types.ts"
import { fileLock, tryFileLock } from "../data/file-lock.ts"
import type { Failure } from "../failure.ts"
import { installLimits } from "../limits.ts"
import { copyLocal } from "./copy-local.ts"
import { climbsOut } from "./freeze.ts"
import { installedPackages } from "./installed-packages.ts"
import { checkLayer, placeLayer, recall, remember, type Remembered, removeTree, touch } from "./layers.ts"
import { type Entry, entriesOf, factsOf, NotALayer } from "./listing.ts"
import { commandFor, languageFor, layouts, tellsOfFetch } from "./managers.ts"
import { pruneLayers } from "./prune.ts"
import { registryFor } from "./registries.ts"
import { requestOf } from "./spec.ts"
import type { Build, FrozenLayer, InstallAnswer, InstallOptions, InstallSpec, LayerPath } from "./types.ts"

interface InstallHere {
  readonly data: string
  readonly config: OperatorConfig
  readonly build: Build
  /** finish or undo what a killed build was writing to the folder */
  readonly recover: (folder: string) => Promise<void>
  /** the host waits no longer */
  readonly closing: AbortSignal
}

interface EnsureOptions extends InstallOptions {
  /** install anew what is there and was changed; else that is refused */
  readonly repair?: boolean
  /** install anew whatever is there: a registry may have something newer for a range */
  readonly anew?: boolean
}

export interface Installs {
  /** what is installed already */
  find(spec: InstallSpec): Promise<InstallAnswer<FrozenLayer>>
  /** what is installed already, or is now */
  ensure(spec: InstallSpec, options?: EnsureOptions): Promise<InstallAnswer<FrozenLayer>>
  /** Remove what none of these leads to. */
  prune(wanted: readonly InstallSpec[]): Promise<ReturnType<typeof pruneLayers>>
}

const failed = (message: string, hint: string, details: Failure["details"] = {}): Failure => ({
  ok: false,
  code: "install_failed",
  message,
  hint,
  details,
})
const cancelled: Failure = { ok: false, code: "cancelled", message: "the installation was cancelled", details: {} }

/** A request whose layer can be looked up and made. */
interface Known {
  readonly key: string
  readonly what: string
  /** fill the empty folder */
  fill(folder: string, options: InstallOptions & { readonly signal: AbortSignal }): Promise<InstallAnswer<undefined>>
}

const knownPackages = (
  spec: Extract<InstallSpec, { packages: unknown }>,
  { config, build }: InstallHere,
): InstallAnswer<Known> => {
  const language = languageFor(spec.source, config)
  if (!language.ok)
    return { ok: false, code: "tool_unavailable", message: language.reason, hint: language.fix, details: {} }
  const registry = registryFor(spec.source, config)
  const request = requestOf(spec, registry.url, language.value.language)
  if (!request.ok) return request
  const { key, what, requirements } = request.value
  const fill: Known["fill"] = async (folder, { signal, tell }) => {
    if (registry.closed.length > 0)
      return failed(
        `${what} comes from ${registry.closed.join(", ")}, which \`egress.allow\` in caisson.yaml leaves out`,
        "add it there, or name another registry as `install.npm_registry` or `install.pip_index`",
      )
    const command = commandFor(spec.source, language.value, registry, requirements)
    if (!command.ok) return failed(`${what} cannot be installed: ${command.reason}`, command.fix)
    let fetched = 0
    return build(
      {
        ...command.value,
        egress: registry.egress,
        folder,
        accept: unacceptable,
        line: (text) => {
          if (!tellsOfFetch(text)) return
          fetched += 1
          tell?.({ phase: "fetching", what, fetched })
        },
      },
      signal,
    )
  }
  return { ok: true, value: { key, what, fill } }
}

/** What no layer may hold, by what the sandbox saw being written; before any of it is there. */
const unacceptable = ({ effects }: WriteSet): string | undefined => {
  for (const { kind, path, refused, target } of effects) {
    if (kind === "special") return `${shown(path)} is no file, folder or link`
    if (refused !== undefined) return `${shown(path)}: ${refused}`
    if (kind === "symlink" && target !== undefined && climbsOut(path, target))
      return `the link ${shown(path)} leads out of it, to ${shown(target)}`
  }
  return undefined
}

const knownFolder = async (folder: string): Promise<InstallAnswer<Known>> => {
  const gone = (message: string): Failure => ({
    ok: false,
    code: "tool_unavailable",
    message,
    hint: "put the package's folder beside the driver's manifest, as `package` says",
    details: {},
  })
  if (!isAbsolute(folder) || statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    return gone("the package's folder is not there")
  let entries: readonly Entry[]
  const source = realpathSync(folder)
  try {
    entries = await entriesOf(source)
  } catch (error) {
    if (!(error instanceof NotALayer)) throw error
    return gone(`the package's folder can be no layer: ${error.message}`)
  }
  const key = createHash("sha256")
    .update(JSON.stringify(["local", source, factsOf(entries)]))
    .digest("hex")
  const fill: Known["fill"] = async (target, { signal }) => {
    await copyLocal(source, target, entries, signal)
    return { ok: true, value: undefined }
  }
  return { ok: true, value: { key, what: "the driver's own package", fill } }
}

const layerOf = (source: InstallSpec["source"], { digest, packages }: Remembered, folder: string): FrozenLayer => {
  const layout = layouts[source]
  const at = (...names: readonly string[]): LayerPath | undefined => {
    if (names.some((name) => name.split("/").some((part) => part === "" || part === "." || part === "..")))
      return undefined
    const host = join(folder, ...names)
    const there = lstatSync(host, { throwIfNoEntry: false }) !== undefined
    return there ? { host, inside: join(layout.inside, ...names) } : undefined
  }
  const inPackages = layout.packages === "" ? [] : [layout.packages]
  return Object.freeze({
    digest: `sha256:${digest}`,
    source,
    folder,
    inside: layout.inside,
    bundles: Object.freeze({ [folder]: layout.inside }),
    env: Object.freeze(source === "pip" ? { PYTHONPATH: join(layout.inside, layout.packages) } : {}),
    packages,
    bin: (name: string) => at(layout.programs, name),
    entry: (name: string) => (source === "npm" ? at(...inPackages, name) : at(...inPackages)),
  })
}

/** What killed builds left; those under way hold their lock. */
const sweep = async ({ data, recover }: InstallHere, own: string): Promise<void> => {
  const builds = installBuildsFolder(data)
  for (const key of readdirSync(builds)) {
    using lock = key === own ? undefined : tryFileLock(join(installLocksFolder(data), key))
    if (key !== own && lock === undefined) continue
    const left = join(builds, key)
    await recover(left).catch(() => undefined)
    removeTree(left)
  }
}

export const createInstalls = (here: InstallHere): Installs => {
  const { data } = here
  const known = (spec: InstallSpec): InstallAnswer<Known> | Promise<InstallAnswer<Known>> => {
    if (spec.source === "local") return knownFolder(spec.folder)
    if (spec.source === "npm" || spec.source === "pip") return knownPackages(spec, here)
    return {
      ok: false,
      code: "tool_unavailable",
      message: `this host installs by npm, pip and local, not by ${shown(String((spec as { source: unknown }).source), 30)}`,
      hint: "use a driver whose package comes by npm or pip, or lies beside its manifest (`local`)",
      details: {},
    }
  }

  const look = async (spec: InstallSpec, { key, what }: Known): Promise<InstallAnswer<FrozenLayer>> => {
    const remembered = recall(data, key)
    if (remembered === undefined)
      return {
        ok: false,
        code: "tool_unavailable",
        message: `${what} is not installed`,
        hint: "run `caisson install DRIVER`, or set `install: { on_demand: true }` in caisson.yaml",
        details: { installed: false },
      }
    const checked = await checkLayer(data, remembered.digest)
    if (checked.ok) {
      touch(data, key)
      return { ok: true, value: layerOf(spec.source, remembered, checked.folder) }
    }
    return failed(
      `what was installed as ${what} was changed since, and is not used: ${checked.reason}`,
      "run `caisson install DRIVER` to install it anew",
      { layer: `sha256:${remembered.digest}` },
    )
  }

  const build = async (
    spec: InstallSpec,
    request: Known,
    options: InstallOptions & { signal: AbortSignal },
  ): Promise<Failure | undefined> => {
    const { tell, signal } = options
    const { key, what } = request
    mkdirSync(installBuildsFolder(data), { recursive: true, mode: 0o700 })
    await sweep(here, key)
    const folder = join(installBuildsFolder(data), key)
    mkdirSync(folder, { mode: 0o755 })
    try {
      tell?.({ phase: "building", what })
      const filled = await request.fill(folder, options)
      if (!filled.ok) return filled
      tell?.({ phase: "freezing", what })
      const packages = spec.source === "local" ? [] : installedPackages(spec.source, folder)
      const digest = await placeLayer(data, folder, signal)
      remember(data, key, { digest, packages })
      tell?.({ phase: "done", what, digest: `sha256:${digest}` })
      return undefined
    } catch (error) {
      if (signal.aborted) return cancelled
      if (!(error instanceof NotALayer)) throw error
      return failed(`${what} was not installed: ${error.message}`, "use another version or another package")
    } finally {
      removeTree(folder)
    }
  }

  const ensure = async (
    spec: InstallSpec,
    { repair = false, anew = false, tell, signal: given }: EnsureOptions = {},
  ): Promise<InstallAnswer<FrozenLayer>> => {
    const signal = given === undefined ? here.closing : AbortSignal.any([given, here.closing])
    const request = await known(spec)
    if (!request.ok) return request
    const found = await look(spec, request.value)
    const stands = (answer: InstallAnswer<FrozenLayer>): boolean =>
      !anew && (answer.ok || (answer.code === "install_failed" && !repair))
    if (stands(found)) return found
    const { key, what } = request.value
    using lock = await fileLock(join(installLocksFolder(data), key), {
      waitMs: installLimits.lockMs.value,
      signal,
      onWait: () => tell?.({ phase: "waiting", what }),
    })
    if (lock === undefined)
      return signal.aborted
        ? cancelled
        : failed(`another process has been installing ${what} for too long`, "see what it waits for, or end it")
    // Whoever had the lock may have done it.
    const now = await look(spec, request.value)
    if (stands(now)) return now
    return (
      (await build(spec, request.value, { signal, ...(tell === undefined ? {} : { tell }) })) ??
      look(spec, request.value)
    )
  }

  return Object.freeze({
    find: async (spec: InstallSpec) => {
      const request = await known(spec)
      return request.ok ? look(spec, request.value) : request
    },
    ensure,
    prune: async (wanted: readonly InstallSpec[]) => {
      const requests = await Promise.all(wanted.map(async (spec) => known(spec)))
      const keys = new Set(requests.flatMap((request) => (request.ok ? [request.value.key] : [])))
      return pruneLayers(data, keys)
    },
  })
}
