/**
 * From a request for packages to a frozen layer: found where it was installed before, else built, once.
 *
 * Guarantees: `find` builds nothing and hands out only what is as it was installed. `ensure` builds in a sandbox that
 * reaches the registry alone; of processes that want the same at once, one builds and the others wait for it. A build that
 * fails, is cancelled or killed leaves nothing that could be taken for a layer, and the next one clears it away. Of a
 * driver's methods the first that works is taken, in their order; one whose bytes are not what they should be ends it.
 * Assumes: a registry gives the same bytes for a version, within a build; what was built once is kept until pruned.
 * Does not: update. A range is settled when it is installed.
 */
import { mkdirSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { installBuildsFolder, installLocksFolder } from "../../data-folder/paths.ts"
import { fileLock, tryFileLock } from "../data/file-lock.ts"
import { installLimits } from "../limits.ts"
import { ensureFirst, findFirst } from "./choose.ts"
import { cancelled, failed, notHere } from "./failures.ts"
import { layerOf } from "./layout.ts"
import { checkLayer, placeLayer, recall, remember, removeTree, touch } from "./layers.ts"
import { NotALayer } from "./listing.ts"
import { knownFor } from "./methods/known.ts"
import { pruneLayers } from "./prune.ts"
import type {
  EnsureOptions,
  FillOptions,
  FrozenLayer,
  InstallAnswer,
  InstallFailure,
  InstallSpec,
  Known,
  MethodSpec,
  MethodTools,
} from "./types.ts"

interface InstallHere extends MethodTools {
  /** finish or undo what a killed build was writing to the folder */
  readonly recover: (folder: string) => Promise<void>
  /** the host waits no longer */
  readonly closing: AbortSignal
}

export interface Installs {
  /** what is installed already */
  find(spec: InstallSpec): Promise<InstallAnswer<FrozenLayer>>
  /** what is installed already, or is now */
  ensure(spec: InstallSpec, options?: EnsureOptions): Promise<InstallAnswer<FrozenLayer>>
  /** Remove what none of these leads to. */
  prune(wanted: readonly InstallSpec[]): Promise<ReturnType<typeof pruneLayers>>
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

const look = async (data: string, spec: MethodSpec, { key, what }: Known): Promise<InstallAnswer<FrozenLayer>> => {
  const remembered = recall(data, key)
  if (remembered === undefined)
    return notHere(
      `${what} is not installed`,
      "run `caisson install DRIVER`, or set `install: { on_demand: true }` in caisson.yaml",
      { installed: false },
    )
  const checked = await checkLayer(data, remembered.digest)
  if (checked.ok) {
    touch(data, key)
    return { ok: true, value: layerOf(spec, remembered, checked.folder) }
  }
  return failed(
    `what was installed as ${what} was changed since, and is not used: ${checked.reason}`,
    "run `caisson install DRIVER` to install it anew",
    { layer: `sha256:${remembered.digest}` },
  )
}

const build = async (
  here: InstallHere,
  request: Known,
  { tell, signal }: FillOptions,
): Promise<InstallFailure | undefined> => {
  const { data } = here
  const { key, what } = request
  mkdirSync(installBuildsFolder(data), { recursive: true, mode: 0o700 })
  await sweep(here, key)
  const folder = join(installBuildsFolder(data), key)
  mkdirSync(folder, { mode: 0o755 })
  try {
    tell({ phase: "building", what })
    const filled = await request.fill(folder, { signal, tell })
    if (!filled.ok) return filled
    tell({ phase: "freezing", what })
    const digest = await placeLayer(data, folder, signal)
    remember(data, key, { digest, packages: filled.value })
    tell({ phase: "done", what, digest: `sha256:${digest}` })
    return undefined
  } catch (error) {
    if (signal.aborted) return cancelled
    if (!(error instanceof NotALayer)) throw error
    return failed(`${what} was not installed: ${error.message}`, "use another version or another package")
  } finally {
    removeTree(folder)
  }
}

const ensureOne = async (
  here: InstallHere,
  spec: MethodSpec,
  { repair = false, anew = false, tell = () => {}, signal: given }: EnsureOptions,
): Promise<InstallAnswer<FrozenLayer>> => {
  const { data } = here
  const signal = given === undefined ? here.closing : AbortSignal.any([given, here.closing])
  const request = await knownFor(spec, here)
  if (!request.ok) return request
  const found = await look(data, spec, request.value)
  const stands = (answer: InstallAnswer<FrozenLayer>): boolean =>
    !anew && (answer.ok || (answer.code === "install_failed" && !repair))
  if (stands(found)) return found
  const { key, what } = request.value
  using lock = await fileLock(join(installLocksFolder(data), key), {
    waitMs: installLimits.lockMs.value,
    signal,
    onWait: () => tell({ phase: "waiting", what }),
  })
  if (lock === undefined)
    return signal.aborted
      ? cancelled
      : failed(`another process has been installing ${what} for too long`, "see what it waits for, or end it")
  // Whoever had the lock may have done it.
  const now = await look(data, spec, request.value)
  if (stands(now)) return now
  return (await build(here, request.value, { signal, tell })) ?? (await look(data, spec, request.value))
}

export const createInstalls = (here: InstallHere): Installs => {
  const findOne = async (spec: MethodSpec): Promise<InstallAnswer<FrozenLayer>> => {
    const request = await knownFor(spec, here)
    return request.ok ? await look(here.data, spec, request.value) : request
  }
  const find: Installs["find"] = async (spec) =>
    spec.source === "first-of" ? await findFirst(spec, findOne) : await findOne(spec)
  return Object.freeze({
    find,
    ensure: async (spec: InstallSpec, options: EnsureOptions = {}) => {
      if (spec.source !== "first-of") return await ensureOne(here, spec, options)
      const signal = options.signal === undefined ? here.closing : AbortSignal.any([options.signal, here.closing])
      return await ensureFirst(spec, { ...options, signal }, here.data, {
        find,
        ensure: (each, how) => ensureOne(here, each, how),
      })
    },
    prune: async (wanted: readonly InstallSpec[]) => {
      const specs = wanted.flatMap((spec) => (spec.source === "first-of" ? spec.specs : [spec]))
      const requests = await Promise.all(specs.map((spec) => knownFor(spec, here)))
      const keys = new Set(requests.flatMap((request) => (request.ok ? [request.value.key] : [])))
      return pruneLayers(here.data, keys)
    },
  })
}
