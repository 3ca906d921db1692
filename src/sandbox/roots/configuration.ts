/**
 * What of /etc a sealed program sees, and how it is told that some of it has changed.
 *
 * Guarantees: a short list that says nothing about this machine's users or services. Small folders are copied, because
 * each one shown as a mount is paid for by every sandbox; only what everybody may read is, with no more rights than it
 * had. Folders that are large, and anything that is no file, folder or link, are shown as they lie.
 */
import { copyFileSync, existsSync, lstatSync, readdirSync, readlinkSync, realpathSync, symlinkSync } from "node:fs"
import { chmodSync } from "node:fs"
import { dirname, join } from "node:path"
import { copyFile, makeFolder, makeFolders } from "../exact-modes.ts"
import { COPIED } from "./limits.ts"

const names = [
  "alternatives",
  "fonts",
  "ImageMagick-6",
  "ImageMagick-7",
  "java-11-openjdk",
  "java-17-openjdk",
  "java-21-openjdk",
  "ld.so.cache",
  "ld.so.conf",
  "ld.so.conf.d",
  "localtime",
  "timezone",
  "locale.alias",
  "magic",
  "magic.mime",
  "mime.types",
  "os-release",
  "debian_version",
  "perl",
  "protocols",
  "python3",
  "python3.9",
  "python3.10",
  "python3.11",
  "python3.12",
  "python3.13",
  "rpc",
  "services",
  "ssl/certs",
  "ssl/openssl.cnf",
  "ca-certificates.conf",
  "terminfo",
  "xml",
  "sgml",
  "gai.conf",
  "ethertypes",
  "netconfig",
  "crypto-policies",
]

interface Entry {
  /** below the folder; empty for the folder itself */
  readonly path: string
  readonly kind: "file" | "folder" | "link"
  readonly mode: number
  readonly bytes: number
  /** when anything about it changed last */
  readonly changed: number
}

/** All that is in a folder, itself first; undefined where it is too much, or more than files, folders and links. */
const entriesOf = (folder: string): readonly Entry[] | undefined => {
  const found: Entry[] = []
  let bytes = 0
  const look = (path: string): boolean => {
    const stat = lstatSync(join(folder, path))
    const kind = stat.isDirectory() ? "folder" : stat.isSymbolicLink() ? "link" : stat.isFile() ? "file" : undefined
    if (kind === undefined) return false
    bytes += kind === "file" ? stat.size : 0
    found.push({ path, kind, mode: stat.mode, bytes: stat.size, changed: stat.ctimeMs })
    if (found.length > COPIED.entries || bytes > COPIED.bytes) return false
    return kind !== "folder" || readdirSync(join(folder, path)).every((name) => look(join(path, name)))
  }
  try {
    return look("") ? found : undefined
  } catch {
    // Changed while it was looked at, or not for us to read.
    return undefined
  }
}

const READ_BY_ALL = 0o004
const ENTERED_BY_ALL = 0o005

const copyFolder = (source: string, target: string, entries: readonly Entry[]): void => {
  const left = new Set<string>()
  for (const { path, kind, mode } of entries) {
    const wanted = kind === "folder" ? ENTERED_BY_ALL : READ_BY_ALL
    if (left.has(dirname(path)) || (kind !== "link" && (mode & wanted) !== wanted)) {
      left.add(path)
      continue
    }
    const at = join(target, path)
    if (kind === "folder") makeFolder(at, 0o755)
    else if (kind === "link") symlinkSync(readlinkSync(join(source, path)), at)
    else {
      copyFileSync(join(source, path), at)
      chmodSync(at, mode & 0o555)
    }
  }
}

/** `show` puts a folder of the host in a place of the view as it is. */
export const placeConfiguration = (etc: string, show: (source: string, target: string) => void): void => {
  for (const name of names) {
    const source = join("/etc", name)
    if (!existsSync(source)) continue
    const target = join(etc, name)
    makeFolders(dirname(target))
    const real = realpathSync(source)
    if (!lstatSync(real).isDirectory()) {
      copyFile(real, target)
      continue
    }
    const entries = entriesOf(real)
    if (entries === undefined) {
      makeFolders(target)
      show(real, target)
    } else copyFolder(real, target, entries)
  }
}

let known: { readonly at: number; readonly edition: string } | undefined

/** Changes when what was copied would be copied otherwise now. Looked at no more often than every few seconds. */
export const configurationEdition = (): string => {
  const now = performance.now()
  if (known !== undefined && now - known.at < COPIED.lookedAtMs) return known.edition
  const editions = names.map((name) => {
    const source = join("/etc", name)
    if (!existsSync(source)) return ""
    const entries = entriesOf(realpathSync(source))
    return entries === undefined ? "shown" : entries.map(({ path, mode, changed }) => [path, mode, changed]).join(";")
  })
  known = { at: now, edition: editions.join("\n") }
  return known.edition
}
