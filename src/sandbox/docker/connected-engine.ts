/**
 * What all calls of one host share at an engine: the connection, the work folder, the images, the bridge's code.
 *
 * Guarantees: opening it removes what hosts of this data folder that died left behind (containers and mounts) and
 * nothing else; an engine or machine that cannot enforce a profile is refused with its cause. Disposing leaves
 * no mount and no container.
 */
import { createHash } from "node:crypto"
import { closeSync, mkdirSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { dockerFolder } from "../../data-folder/paths.ts"
import { makeFile, makeFolders } from "../exact-modes.ts"
import type { Executables, Unavailable } from "../backend.ts"
import { holdUsers, Users } from "../identities.ts"
import { currentNetwork } from "../network/netns.ts"
import { OwnerMaps } from "../layers/overlay.ts"
import { provePlace } from "../layers/prove-place.ts"
import { type LayerPlace, openLayerStore } from "../layers/store.ts"
import { type ContainerRoot, LABEL, type RootMaker } from "./container/container-spec.ts"
import { discoverEngine, type Endpoint, parseHost } from "./engine/discovery.ts"
import { type Engine, type EngineInfo, openEngine, type Outcome } from "./engine/engine.ts"
import { type EngineWatch, watchEngine } from "./engine/engine-watch.ts"
import { type WorkFolder, hostLives, openWorkFolder, sweepWorkFolders } from "./work-folder.ts"
import type { ServeBuild } from "./images/builder-network.ts"
import { imageRoots } from "./images/image-root.ts"
import { pinnedRoots } from "./images/pinned-root.ts"
import type { DriverLayer } from "./images/images.ts"
import { hostRoots, rootKey } from "./images/host-root.ts"
import { seccompProfile } from "./container/seccomp-json.ts"
import { Removals } from "./engine/removals.ts"

export interface ConnectedEngine {
  readonly engine: Engine
  readonly info: EngineInfo
  readonly removals: Removals
  readonly workFolder: WorkFolder
  readonly owners: OwnerMaps
  readonly layers: LayerPlace
  readonly watch: EngineWatch
  readonly users: Users
  readonly ownUsers: boolean
  readonly architecture: string
  readonly seccomp: string
  readonly usernsRemap: boolean
  readonly homeNetwork: number
  readonly data: string
  readonly rootFor: RootMaker["make"]
  /** An image that was there is gone (`docker image prune`): roots are looked for, and made, anew. */
  forgetRoots(): void
  dispose(): Promise<void>
}
export interface RootOptions {
  /**
   * `image`: the programs of the runner image and its driver layers, the default where `layerFor` says how to get
   * them; `host`: the machine's own programs, as in the namespace backend
   */
  readonly rootfs?: "host" | "image"
  /** an image for the runner to be built on */
  readonly base?: string
  /** packages that a set of programs needs on top of the runner image */
  readonly layerFor?: (executables: Executables) => DriverLayer | undefined
  /** serves the one way out of a layer's build: registries only */
  readonly serveBuild?: ServeBuild
}
interface ConnectedEngineOptions extends RootOptions {
  readonly data: string
  readonly engine?: string | Endpoint
  readonly progress?: (line: string) => void
  readonly onEngineLost: () => void
}

const refuse = (control: string, message: string, fix: string): Unavailable => ({ ok: false, control, message, fix })

const findEngine = async (wanted: string | Endpoint | undefined): Promise<Engine | Unavailable> => {
  if (typeof wanted === "string") {
    const endpoint = parseHost(wanted, "given")
    if (endpoint === undefined)
      return refuse("engine", `not an engine address: ${wanted}`, "write unix:///path or tcp://host:port")
    return openEngine(endpoint)
  }
  if (wanted !== undefined) return openEngine(wanted)
  const found = await discoverEngine()
  return found.ok
    ? openEngine(found.endpoint)
    : refuse("engine", found.message, "install Docker or Podman and start it, or set DOCKER_HOST")
}

const MINIMUM_API = 1.41
/** Why this engine cannot enforce a profile, whatever the profile. */
export const engineTrouble = (info: EngineInfo): Unavailable | undefined => {
  if (info.rootless)
    return refuse(
      "engine-rootless",
      "a rootless engine cannot be given the call's layers and limits",
      "use the machine's rootful engine, or the namespace backend",
    )
  if (Number.parseFloat(info.api) < MINIMUM_API)
    return refuse(
      "engine-version",
      `the engine speaks API ${info.api}; 1.41 (Docker 20.10) is the least`,
      "upgrade the engine",
    )
  if (info.cgroupDriver === "none")
    return refuse(
      "engine-limits",
      "the engine has no control groups, so limits would be ignored",
      "run the engine with cgroups",
    )
  if (!info.limits.memory || !info.limits.pids)
    return refuse(
      "engine-limits",
      `the engine cannot limit ${info.limits.memory ? "processes" : "memory"}`,
      "mount the memory and pids controllers (kernel: cgroup_enable=memory)",
    )
  if (!info.security.some((option) => option.startsWith("name=seccomp")))
    return refuse(
      "engine-seccomp",
      "the engine has no seccomp, so system calls would not be filtered",
      "use an engine built with seccomp",
    )
  return undefined
}

/** Containers of hosts of this data folder that are gone. */
const reapOrphans = async (engine: Engine, data: string): Promise<void> => {
  const found = await engine.list([`${LABEL.data}=${data}`])
  if (!found.ok) return
  await Promise.all(
    found.value.filter(({ labels }) => !hostLives(labels[LABEL.host] ?? "")).map(({ id }) => engine.remove(id)),
  )
}

export const connectEngine = async (options: ConnectedEngineOptions): Promise<ConnectedEngine | Unavailable> => {
  if (process.getuid?.() !== 0)
    return refuse(
      "engine-host-root",
      "the docker backend mounts layers and enters network namespaces, which takes root",
      "run caisson as root, or use the namespace backend",
    )
  const engine = await findEngine(options.engine)
  if ("ok" in engine) return engine
  const answered = await engine.info()
  if (!answered.ok)
    return refuse(
      `engine-${answered.failure.kind}`,
      `the container engine does not answer: ${answered.failure.message}`,
      "start it, or set DOCKER_HOST",
    )
  const info = answered.value
  const trouble = engineTrouble(info)
  if (trouble !== undefined) return trouble
  const parent = dockerFolder(options.data)
  mkdirSync(parent, { recursive: true, mode: 0o700 })
  const data = createHash("sha256").update(realpathSync(options.data)).digest("hex").slice(0, 24)
  await reapOrphans(engine, data)
  sweepWorkFolders(realpathSync(parent))
  const workFolder = openWorkFolder(realpathSync(parent))
  const layers = openLayerStore(realpathSync(options.data))
  const homeNetwork = currentNetwork()
  const held = holdUsers()
  const owners = new OwnerMaps()
  const removals = new Removals(engine)
  const watch = watchEngine(engine, options.onEngineLost)
  const architecture = info.architecture === "aarch64" || info.architecture === "arm64" ? "arm64" : "x64"
  let seccomp = JSON.stringify(seccompProfile(architecture))
  if (info.product === "podman") {
    makeFile(join(workFolder.dir, "seccomp.json"), seccomp, 0o444)
    seccomp = join(workFolder.dir, "seccomp.json")
  }
  const roots = new Map<string, Promise<Outcome<ContainerRoot>>>()

  const progress = options.progress ?? (() => {})
  const imageRootsOf = (own: Pick<RootOptions, "base" | "layerFor"> & { dir: string }): RootMaker =>
    imageRoots({
      engine,
      product: info.product,
      builder: {
        removals,
        host: workFolder.host,
        data,
        homeNetwork,
        ...(options.serveBuild === undefined ? {} : { serve: options.serveBuild }),
      },
      codeDir: own.dir,
      users: held,
      progress,
      ...(own.base === undefined ? {} : { base: own.base }),
      ...(own.layerFor === undefined ? {} : { layerFor: own.layerFor }),
    })
  const pinned = new Map<string, RootMaker>()
  const makerOf = (image: string): RootMaker => {
    const known = pinned.get(image)
    if (known !== undefined) return known
    const codeDir = join(workFolder.dir, `image-${pinned.size}`)
    makeFolders(codeDir)
    const made = pinnedRoots({ engine, image, codeDir, users: held, progress })
    pinned.set(image, made)
    return made
  }
  const rootfs = options.rootfs ?? (options.layerFor === undefined ? "host" : "image")
  const maker =
    rootfs === "host"
      ? hostRoots({
          engine,
          dir: workFolder.dir,
          users: held,
          architecture: architecture === "arm64" ? "arm64" : "amd64",
          progress,
        })
      : imageRootsOf({
          dir: workFolder.dir,
          ...(options.base === undefined ? {} : { base: options.base }),
          ...(options.layerFor === undefined ? {} : { layerFor: options.layerFor }),
        })
  return {
    engine,
    info,
    removals,
    workFolder,
    owners,
    layers: provePlace(layers.place, true),
    watch,
    users: new Users(held),
    ownUsers: held.own,
    architecture,
    seccomp,
    usernsRemap: info.usernsRemap,
    homeNetwork,
    data,
    rootFor(executables) {
      const key = rootKey(executables)
      let root = roots.get(key)
      if (root === undefined) {
        const { image } = executables
        root = (image === undefined ? maker : makerOf(image)).make(executables).catch((error: Error) => ({
          ok: false as const,
          failure: {
            kind: "refused" as const,
            message: `the program's view of the system could not be built: ${error.message}`,
          },
        }))
        roots.set(key, root)
        void root.then((made) => {
          if (!made.ok) roots.delete(key)
        })
      }
      return root
    },
    forgetRoots() {
      roots.clear()
      for (const each of [maker, ...pinned.values()]) each.forget()
    },
    async dispose() {
      watch.dispose()
      await removals.retry()
      await owners.dispose()
      closeSync(homeNetwork)
      held.release()
      workFolder.dispose()
      await layers.dispose()
    },
  }
}
