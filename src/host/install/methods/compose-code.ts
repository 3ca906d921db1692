/**
 * The files that a driver is composed of (AIP-26), found and laid over one another.
 *
 * Guarantees: the last source of a path wins; only plain files are taken, no link is followed and none is taken, and nothing
 * from outside the folders that a source may be looked for in. Names, files, bytes and depth are bounded before anything is
 * read. Two looks that give the same key saw the same files.
 */
import { createHash } from "node:crypto"
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  realpathSync,
  writeFileSync,
} from "node:fs"
import { dirname, join, sep } from "node:path"
import { setImmediate as breath } from "node:timers/promises"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { CodeSource } from "../../../manifest/types.ts"
import { codeLimits } from "../../limits.ts"
import { NotALayer } from "../listing.ts"

type Local = Extract<CodeSource, { from: "local" }>
/** By its path in the bundle: what is written there, or where it is read. */
type ComposedFiles = ReadonlyMap<
  string,
  { readonly text: string } | { readonly file: string; readonly facts: string; readonly size: number }
>

const SKIPPED = new Set([".git"])

const factsOf = (path: string) => lstatSync(path, { bigint: true, throwIfNoEntry: false })
type Facts = NonNullable<ReturnType<typeof factsOf>>

/** `*` and `?` of a name. */
const matcher = (glob: string | undefined): ((name: string) => boolean) => {
  if (glob === undefined) return () => true
  const parts = glob.split("*").map((part) => part.replaceAll(/[.+^${}()|[\]\\]/g, "\\$&").replaceAll("?", "."))
  if (parts.length > codeLimits.globStars.value)
    throw new NotALayer(`the pattern ${shown(glob, 60)} has too many stars`)
  const pattern = new RegExp(`^${parts.join(".*")}$`)
  return (name) => pattern.test(name)
}

/** Where it lies, with no link on the way there. */
const locate = ({ bases, path }: Local): { readonly at: string; readonly facts: Facts } => {
  for (const base of bases) {
    const at = path === "." ? base : join(base, path)
    const facts = factsOf(at)
    if (facts === undefined) continue
    const [real, root] = [realpathSync(at), realpathSync(base)]
    if (real !== (path === "." ? root : join(root, path))) throw new NotALayer(`a link leads to ${shown(path, 80)}`)
    return { at: real, facts }
  }
  throw new NotALayer(`there is no ${shown(path, 80)}`)
}

class Found {
  readonly files = new Map<string, { text: string } | { file: string; facts: string; size: number }>()
  #bytes = 0
  #seen = 0
  add(path: string, what: { text: string } | { file: string; facts: string; size: number }): void {
    this.#seen += 1
    this.#bytes += "text" in what ? Buffer.byteLength(what.text) : what.size
    if (this.#seen > codeLimits.files.value) throw new NotALayer(`it holds more than ${codeLimits.files.value} files`)
    if (this.#bytes > codeLimits.bytes.value) throw new NotALayer(`it holds more than ${codeLimits.bytes.value} bytes`)
    this.files.set(path, what)
  }
  addFile(path: string, at: string, { ino, ctimeNs, mtimeNs, size, mode }: Facts): void {
    this.add(path, { file: at, facts: `${ino} ${ctimeNs} ${mtimeNs} ${size} ${mode}`, size: Number(size) })
  }
  addFolder(target: string, folder: string, fits: (name: string) => boolean, depth = 0): void {
    if (depth > codeLimits.depth.value)
      throw new NotALayer(`its folders lie deeper than ${codeLimits.depth.value} within one another`)
    for (const name of readdirSync(folder).sort()) {
      if (SKIPPED.has(name)) continue
      const at = join(folder, name)
      const facts = factsOf(at)
      const path = target === "" ? name : `${target}/${name}`
      if (facts?.isDirectory() === true) this.addFolder(path, at, fits, depth + 1)
      else if (facts?.isFile() === true) {
        if (fits(name)) this.addFile(path, at, facts)
      } else throw new NotALayer(`${shown(path, 80)} is no plain file`)
    }
  }
}

const addLocal = (found: Found, source: Local): void => {
  const { at, facts } = locate(source)
  const as = source.as === "." ? "" : source.as
  if (facts.isDirectory()) found.addFolder(as ?? "", at, matcher(source.glob))
  else if (facts.isFile()) found.addFile(as ?? source.path, at, facts)
  else throw new NotALayer(`${shown(source.path, 80)} is no file and no folder`)
}

/** Every file of the bundle, as it is now. Throws `NotALayer`. */
export const composedFiles = (sources: readonly CodeSource[]): ComposedFiles => {
  const found = new Found()
  for (const source of sources) {
    if (source.from === "inline") found.add(source.path, { text: source.content })
    else addLocal(found, source)
  }
  const paths = [...found.files.keys()].sort()
  const inside = paths.find((path, index) => paths[index + 1]?.startsWith(`${path}/`))
  if (inside !== undefined) throw new NotALayer(`${shown(inside, 80)} is a file and a folder at once`)
  return found.files
}

export const keyOfComposed = (files: ComposedFiles): string =>
  createHash("sha256")
    .update(JSON.stringify(["code", [...files].sort(([a], [b]) => (a < b ? -1 : 1))]))
    .digest("hex")

const bytesOf = (file: string, size: number): Uint8Array => {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
  try {
    if (!fstatSync(fd).isFile()) throw new NotALayer(`${shown(file, 80)} was replaced while it was read`)
    const buffer = new Uint8Array(size + 1)
    let filled = 0
    for (let got = 1; got > 0 && filled < buffer.length; filled += got)
      got = readSync(fd, buffer, filled, buffer.length - filled, null)
    if (filled !== size) throw new NotALayer(`${shown(file, 80)} changed while it was read`)
    return buffer.subarray(0, size)
  } finally {
    closeSync(fd)
  }
}

/** Into an empty folder. */
export const writeComposed = async (target: string, files: ComposedFiles, signal: AbortSignal): Promise<void> => {
  const root = realpathSync(target)
  let written = 0
  for (const [path, what] of files) {
    const at = join(root, path)
    if (!at.startsWith(`${root}${sep}`)) throw new TypeError(`${path} leads out of the bundle`)
    mkdirSync(dirname(at), { recursive: true, mode: 0o755 })
    writeFileSync(at, "text" in what ? what.text : bytesOf(what.file, what.size), { flag: "wx", mode: 0o644 })
    written += 1
    if (written % 64 === 0) {
      await breath()
      signal.throwIfAborted()
    }
  }
}
