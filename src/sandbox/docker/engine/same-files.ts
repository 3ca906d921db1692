/**
 * Does the engine see the files that this process sees? Asked when a container could not be started, because an engine
 * in another mount namespace (Docker in Docker, Kubernetes, a snap) or on another machine answers like any other and
 * then finds something else, or nothing, below the folders it is given.
 *
 * Guarantees: the answer rests on a marker that nobody else knows, read back through the engine from a container that
 * is never started; nothing of it is left.
 */
import { randomBytes } from "node:crypto"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { insideBridge, LABEL } from "../container/container-spec.ts"
import type { ContainerId, Engine, EngineFailure, Outcome } from "./engine.ts"
import type { WorkFolder } from "../work-folder.ts"
import { onlyFile } from "./only-file.ts"
import type { Removals } from "./removals.ts"

interface MarkerOptions {
  readonly engine: Engine
  readonly product: "docker" | "podman"
  readonly removals: Removals
  readonly workFolder: WorkFolder
  /** any image that the engine has; nothing in it is run */
  readonly image: string
  readonly data: string
}

/** What engines say of a folder that is not there for them. */
const ABSENT = /bind source path does not exist|no such file or directory|statfs/i

const create = (
  { engine, product, workFolder, image, data }: MarkerOptions,
  folder: string,
): Promise<Outcome<ContainerId>> =>
  engine.create({
    Image: image,
    Cmd: ["/"],
    Labels: { [LABEL.host]: workFolder.host, [LABEL.slot]: "marker", [LABEL.data]: data },
    HostConfig: {
      NetworkMode: "none",
      ...(product === "podman"
        ? { Binds: [`${folder}:${insideBridge}:ro`] }
        : { Mounts: [{ Type: "bind", Source: folder, Target: insideBridge, ReadOnly: true }] }),
    },
  })

const readBack = async (options: MarkerOptions, folder: string): Promise<string | EngineFailure> => {
  const created = await create(options, folder)
  // An image that is not there says nothing of files.
  if (!created.ok) return created.failure.kind === "not-found" ? { kind: "refused", message: "" } : created.failure
  try {
    const tar = await options.engine.read(created.value, `${insideBridge}/marker`)
    if (!tar.ok) return tar.failure
    return (await onlyFile(tar.value))?.toString("utf8") ?? ""
  } finally {
    await options.removals.remove(created.value)
  }
}

/** `unknown`: the engine had another reason not to tell. */
export const engineSeesOurFiles = async (options: MarkerOptions): Promise<"yes" | "no" | "unknown"> => {
  const marker = randomBytes(16).toString("hex")
  const folder = join(options.workFolder.dir, `marker-${marker}`)
  mkdirSync(folder, { mode: 0o755 })
  writeFileSync(join(folder, "marker"), marker, { mode: 0o444 })
  try {
    const found = await readBack(options, folder)
    if (typeof found === "string") return found === marker ? "yes" : "no"
    return found.kind === "not-found" || ABSENT.test(found.message) ? "no" : "unknown"
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

export const elsewhere = (engine: Engine): { readonly kind: "elsewhere"; readonly message: string } => {
  const { socketPath, tcp } = engine.endpoint
  const where = socketPath ?? `${tcp?.host}:${tcp?.port}`
  return {
    kind: "elsewhere",
    message: `the engine at ${where} does not see the files of this process: a marker laid into the data folder is not there for it. It runs in another mount namespace (Docker in Docker, Kubernetes, a snap) or on another machine`,
  }
}
