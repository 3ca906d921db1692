/**
 * An image as a `docker load` archive whose id is known before it is loaded.
 *
 * Guarantees: the same layers and configuration give the same bytes and the same image id on every machine: times
 * are zero, owners are root, names are sorted, the id is the SHA-256 of the configuration. Pure but for the bytes
 * it is given.
 */
import { createHash } from "node:crypto"
import { pack } from "tar-stream"

export interface LayerEntry {
  readonly path: string
  readonly mode: number
  readonly content?: Uint8Array
  /** a symbolic link to this target */
  readonly link?: string
}
export interface ImageArchive {
  readonly id: string
  readonly bytes: Buffer
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex")
const EPOCH = new Date(0)

const tar = async (entries: readonly LayerEntry[]): Promise<Buffer> => {
  const archive = pack()
  for (const entry of entries) {
    const common = { name: entry.path, mode: entry.mode, mtime: EPOCH, uid: 0, gid: 0, uname: "root", gname: "root" }
    if (entry.link !== undefined) archive.entry({ ...common, type: "symlink", linkname: entry.link })
    else if (entry.content === undefined) archive.entry({ ...common, type: "directory" })
    else archive.entry({ ...common, type: "file" }, Buffer.from(entry.content))
  }
  archive.finalize()
  const chunks: Buffer[] = []
  for await (const chunk of archive) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks)
}

export const layerOf = (entries: readonly LayerEntry[]): Promise<Buffer> =>
  tar([...entries].sort((a, b) => (a.path < b.path ? -1 : a.path > b.path ? 1 : 0)))

export interface ImageSettings {
  readonly architecture: "amd64" | "arm64"
  readonly repository: string
  /** absent: the first digits of the image's id */
  readonly tag?: string
  readonly env?: readonly string[]
  readonly labels?: Readonly<Record<string, string>>
  /** further words of the image's configuration, as the engine spells them */
  readonly config?: Readonly<Record<string, unknown>>
}

/** One image of the given layer tars, lowest first. */
export const imageArchive = async (layers: readonly Buffer[], settings: ImageSettings): Promise<ImageArchive> => {
  const config = Buffer.from(
    JSON.stringify({
      architecture: settings.architecture,
      config: { Env: settings.env ?? [], Labels: settings.labels ?? {}, ...settings.config },
      created: "1970-01-01T00:00:00Z",
      history: layers.map(() => ({ created: "1970-01-01T00:00:00Z", created_by: "caisson" })),
      os: "linux",
      rootfs: { diff_ids: layers.map((layer) => `sha256:${sha256(layer)}`), type: "layers" },
    }),
  )
  const id = sha256(config)
  const names = layers.map((layer) => `${sha256(layer)}/layer.tar`)
  const manifest = [
    { Config: `${id}.json`, RepoTags: [`${settings.repository}:${settings.tag ?? id.slice(0, 12)}`], Layers: names },
  ]
  const bytes = await tar([
    { path: "manifest.json", mode: 0o644, content: Buffer.from(JSON.stringify(manifest)) },
    { path: `${id}.json`, mode: 0o644, content: config },
    ...layers.map((layer, index) => ({ path: names[index] as string, mode: 0o644, content: layer })),
  ])
  return { id: `sha256:${id}`, bytes }
}
