/**
 * Attributes of a layer's entries, and whom their lists give access.
 *
 * Guarantees: an entry whose lists name whom neither what it replaces nor its folder names is refused. Lists of what lies
 * below are read as the layer spells them: the folder's owner appears there as the sandbox's user.
 */
import { fstatSync, lstatSync } from "node:fs"
import { ACCESS_LIST, addedGrant, DEFAULT_LIST, type Grant, grantsIn } from "../acl.ts"
import { below, parentOf, ROOT, type BytePath } from "../names.ts"
import { readAttributes, type EntryAttributes, type XattrPrefix } from "../xattrs.ts"

const LISTS = [ACCESS_LIST, DEFAULT_LIST]

export class LayerAttributes {
  readonly #upper: string
  readonly #lower: number
  readonly #xattrPrefix: XattrPrefix
  /** `lower`: the folder below, held open by whoever asks */
  constructor(upper: string, lower: number, xattrPrefix: XattrPrefix) {
    this.#upper = upper
    this.#lower = lower
    this.#xattrPrefix = xattrPrefix
  }

  /** `lower`: what it replaces, where it replaces anything. */
  of(path: BytePath, lower: Buffer | undefined): EntryAttributes {
    const own = readAttributes(below(this.#upper, path), this.#xattrPrefix)
    const given = LISTS.flatMap((list) => grantsIn(own.payload.get(list)))
    if (given.length === 0) return own
    const parent = parentOf(path)
    const known = [
      ...(lower === undefined ? [] : LISTS.flatMap((list) => this.#grantsBelow(lower, list))),
      // The root's own lists are not the call's to change: what counts are those of the folder below.
      ...(parent === ROOT
        ? this.#grantsBelow(Buffer.from(`/proc/self/fd/${this.#lower}/.`), DEFAULT_LIST)
        : grantsIn(readAttributes(below(this.#upper, parent), this.#xattrPrefix).payload.get(DEFAULT_LIST))),
    ]
    const added = addedGrant(given, known)
    return added === undefined ? own : { ...own, refused: `gives ${added.to} ${added.id} access to it` }
  }

  #grantsBelow(path: Buffer, list: string): readonly Grant[] {
    const [owner, sandbox] = [fstatSync(this.#lower), lstatSync(this.#upper)]
    return grantsIn(readAttributes(path, undefined).payload.get(list)).map((grant) => {
      const isOwner = grant.id === (grant.to === "user" ? owner.uid : owner.gid)
      return isOwner ? { ...grant, id: grant.to === "user" ? sandbox.uid : sandbox.gid } : grant
    })
  }
}
