/**
 * Extended attributes: which are the overlay's own, which are a file's content.
 *
 * Guarantees: only the namespace that this overlay was mounted with (`trusted` as root, `user` with `userxattr`) is
 * read as overlay bookkeeping; `user.*` and POSIX ACLs are payload. Other namespaces belong to the system
 * (SELinux labels, trusted.*) and are neither compared nor carried; file capabilities are refused, and so is any name
 * that an overlay file system of either kind would read as its own: what a call leaves may be a layer's lower next time.
 */
import { lgetxattr, llistxattr } from "../../linux/files.ts"

export type XattrPrefix = "trusted" | "user"
export type Xattrs = ReadonlyMap<string, Buffer>

const asNative = (path: Buffer): string => Buffer.concat([path, Buffer.from([0])]) as unknown as string

export interface EntryAttributes {
  readonly payload: Xattrs
  /** the overlay's own: `opaque`, `origin`, `whiteout`, `redirect`, `metacopy`, … */
  readonly overlay: ReadonlySet<string>
  /** why an attribute can never be committed */
  readonly refused?: string
}

const NONE: EntryAttributes = { payload: new Map(), overlay: new Set() }

export const readAttributes = (path: Buffer, prefix: XattrPrefix | undefined): EntryAttributes => {
  const native = asNative(path)
  const names = llistxattr(native)
  if (names.length === 0) return NONE
  const payload = new Map<string, Buffer>()
  const overlay = new Set<string>()
  let refused: string | undefined
  for (const name of names.sort()) {
    if (prefix !== undefined && name.startsWith(`${prefix}.overlay.`)) {
      const own = name.slice(prefix.length + ".overlay.".length)
      // The kernel stores an attribute of that name set inside the sandbox with the prefix doubled.
      if (own.startsWith("overlay.")) refused = "sets an attribute reserved for overlay file systems"
      else overlay.add(own)
    } else if (/^(user|trusted)\.overlay\./.test(name)) {
      refused = "sets an attribute reserved for overlay file systems"
    } else if (name === "security.capability") {
      refused = "carries file capabilities"
    } else if (name.startsWith("user.") || name.startsWith("system.posix_acl_")) {
      const value = lgetxattr(native, name)
      if (value !== undefined) payload.set(name, value)
    }
  }
  return refused === undefined ? { payload, overlay } : { payload, overlay, refused }
}

export const sameXattrs = (a: Xattrs, b: Xattrs): boolean =>
  a.size === b.size && [...a].every(([name, value]) => b.get(name)?.equals(value) === true)

export const overlayValue = (path: Buffer, prefix: XattrPrefix, name: string): string =>
  lgetxattr(asNative(path), `${prefix}.overlay.${name}`)?.toString("latin1") ?? ""

/**
 * The handle of the lower entry that an upper one was copied from, its type byte first, as `fileHandle` gives it; none
 * where it was not copied. The stored form: version 0, magic, length, flags, type, 16 bytes of uuid, the handle.
 */
export const originHandle = (path: Buffer, prefix: XattrPrefix): Buffer | undefined => {
  const stored = lgetxattr(asNative(path), `${prefix}.overlay.origin`)
  if (stored === undefined || stored.length <= 21 || stored[0] !== 0 || stored[1] !== 0xfb) return undefined
  return Buffer.concat([stored.subarray(4, 5), stored.subarray(21, stored[2])])
}
