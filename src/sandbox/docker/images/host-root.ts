/**
 * The host's own programs as a container's root: the same prepared view as in the namespace backend.
 *
 * Guarantees: a view is made once per set of executables and holds no data of a call; the image below it is empty
 * but for mount points and the host's top-level links, and its id follows from that content.
 * Assumes: root, below a work folder (the engine must see the mounts).
 */
import { createHash } from "node:crypto"
import { existsSync, lstatSync, readdirSync, readlinkSync, rmSync } from "node:fs"
import { join } from "node:path"
import { Readable } from "node:stream"
import { makeFile } from "../../exact-modes.ts"
import type { Executables } from "../../backend.ts"
import type { UserBlock } from "../../identities.ts"
import { buildRootView } from "../../roots/root-view.ts"
import type { ContainerRoot, RootMaker } from "../container/container-spec.ts"
import type { Engine, Outcome, Progress } from "../engine/engine.ts"
import { unmountBelow } from "../work-folder.ts"
import { type ImageArchive, imageArchive, type LayerEntry, layerOf } from "./image-archive.ts"
import { hostInterpreter, openRunnerCode } from "./runner-code.ts"

interface HostRoot {
  /** path inside → path on the host */
  readonly folders: Readonly<Record<string, string>>
  readonly links: Readonly<Record<string, string>>
}

/** Mount points of the container's own, never taken from the view. */
const OWN = new Set(["proc", "dev", "sys", "tmp", "workspace", "home", "run"])

export const rootKey = (executables: Executables): string =>
  createHash("sha256")
    .update(
      JSON.stringify([
        executables.program,
        Object.entries(executables.spawn).sort(),
        Object.entries(executables.bundles).sort(),
        executables.image ?? null,
        executables.imagePrograms ?? false,
      ]),
    )
    .digest("hex")
    .slice(0, 16)

const openHostRoot = (dir: string, executables: Executables, users: UserBlock): HostRoot => {
  try {
    buildRootView(dir, executables)
  } catch (error) {
    unmountBelow(dir)
    rmSync(dir, { recursive: true, force: true })
    throw error
  }
  // Whichever of them a container runs as, it is `tool`.
  const uids = Array.from({ length: users.count }, (_, index) => users.first + index)
  const names = uids.map((uid) => `tool:x:${uid}:${uid}:tool:/home/tool:/usr/sbin/nologin\n`).join("")
  makeFile(
    join(dir, "etc/passwd"),
    `root:x:0:0:root:/nonexistent:/usr/sbin/nologin\n${names}nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n`,
  )
  makeFile(join(dir, "etc/group"), `root:x:0:\n${uids.map((uid) => `tool:x:${uid}:\n`).join("")}nogroup:x:65534:\n`)
  const folders: Record<string, string> = {}
  const links: Record<string, string> = {}
  for (const entry of readdirSync(dir)) {
    if (OWN.has(entry)) continue
    const path = join(dir, entry)
    const stat = lstatSync(path)
    if (stat.isSymbolicLink()) links[entry] = readlinkSync(path)
    else if (stat.isDirectory()) folders[`/${entry}`] = path
  }
  for (const file of ["hosts", "hostname", "resolv.conf"]) folders[`/etc/${file}`] = join(dir, "etc", file)
  return { folders, links }
}

/** The image that such a root is mounted on: nothing to run, nothing to read. */
const emptyImage = async (root: HostRoot, architecture: "amd64" | "arm64"): Promise<ImageArchive> => {
  const points = ["proc", "dev", "sys", "tmp", "workspace", "home", "home/tool", "run", "run/caisson"]
  const tops = Object.keys(root.folders)
    .map((path) => path.slice(1))
    .filter((path) => !path.includes("/"))
  const entries: LayerEntry[] = [
    ...[...points, ...tops].map((path) => ({ path: `${path}/`, mode: 0o755 })),
    ...Object.entries(root.links).map(([path, link]) => ({ path, mode: 0o777, link })),
  ]
  return imageArchive([await layerOf(entries)], { architecture, repository: "caisson/empty" })
}

interface HostRootOptions {
  readonly engine: Engine
  /** where views and the bridge's code are made, on the work folder */
  readonly dir: string
  readonly users: UserBlock
  readonly architecture: "amd64" | "arm64"
  readonly progress: Progress
}

export const hostRoots = (options: HostRootOptions): RootMaker => {
  const { engine, dir, progress } = options
  const views = new Map<string, HostRoot>()
  const loading = new Map<string, Promise<Outcome<unknown>>>()
  let code: string | undefined
  const load = async ({ id, bytes }: ImageArchive): Promise<Outcome<unknown>> => {
    const found = await engine.findImage(id)
    if (!found.ok || found.value !== undefined) return found
    progress("loading the empty image")
    return engine.load(Readable.from([bytes]), progress)
  }
  const make = async (executables: Executables): Promise<Outcome<ContainerRoot>> => {
    if (!existsSync(hostInterpreter))
      return { ok: false, failure: { kind: "refused", message: `${hostInterpreter} is missing: install perl-base` } }
    code ??= openRunnerCode(join(dir, "code"), hostInterpreter)
    const key = rootKey(executables)
    const view = views.get(key) ?? openHostRoot(join(dir, `root-${key}`), executables, options.users)
    views.set(key, view)
    const image = await emptyImage(view, options.architecture)
    const loaded = loading.get(image.id) ?? load(image)
    loading.set(image.id, loaded)
    const outcome = await loaded
    if (outcome.ok) return { ok: true, value: { image: image.id, folders: view.folders, code } }
    loading.delete(image.id)
    return outcome
  }
  return { make, forget: () => loading.clear() }
}
