/**
 * Whether the owner of a workspace may use an entry of it, where the host is root and the kernel would let it do anything.
 *
 * Guarantees: no more than the kernel lets that owner do: a sandbox runs as nobody else either. An entry of another user
 * that has an access list is taken to be closed. Pure but for the look at that list.
 */
import { accessSync, constants } from "node:fs"
import { lgetxattr } from "../../../linux/files.ts"
import { ACCESS_LIST } from "../../effects/acl.ts"
import { errorCode } from "../../effects/beneath.ts"

interface Owner {
  readonly uid: number
  readonly gid: number
}
export const MAY = { read: 4, write: 2, enter: 1 } as const

interface Facts {
  readonly mode: bigint
  readonly uid: bigint
  readonly gid: bigint
}

/** As who the host acts; undefined: as the user that it runs as, and the kernel decides. */
export type ActsAs = Owner | undefined

const native = (path: Buffer): string => Buffer.concat([path, Buffer.from([0])]) as unknown as string

const grants = (owner: Owner, { mode, uid, gid }: Facts, want: number): boolean => {
  const bits = Number(uid) === owner.uid ? mode >> 6n : Number(gid) === owner.gid ? mode >> 3n : mode
  return (Number(bits) & want) === want
}

/** `path` leads to the entry by a descriptor of its folder. */
export const may = (as: ActsAs, path: Buffer, facts: Facts, want: number): boolean => {
  if (as !== undefined) {
    if (!grants(as, facts, want)) return false
    return Number(facts.uid) === as.uid || lgetxattr(native(path), ACCESS_LIST) === undefined
  }
  try {
    accessSync(
      path,
      ((want & MAY.read) !== 0 ? constants.R_OK : 0) |
        ((want & MAY.write) !== 0 ? constants.W_OK : 0) |
        ((want & MAY.enter) !== 0 ? constants.X_OK : 0),
    )
    return true
  } catch (error) {
    if (["EACCES", "EPERM", "EROFS"].includes(errorCode(error))) return false
    throw error
  }
}
