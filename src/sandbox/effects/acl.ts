/**
 * Whom an access control list names. Pure.
 *
 * A mode says what the owner, its group and everybody else may do, and is reported with every effect. A list can name
 * further users and groups, which nothing reports: so a call may keep those that a path or its folder had, and add none.
 */

export interface Grant {
  readonly to: "user" | "group"
  readonly id: number
  /** read 4, write 2, execute 1 */
  readonly permissions: number
}

const ENTRY = 8
const [VERSION, NAMED_USER, NAMED_GROUP] = [2, 0x02, 0x08]

export const ACCESS_LIST = "system.posix_acl_access"
export const DEFAULT_LIST = "system.posix_acl_default"

/** `list`: the value of one of these attributes, as the kernel gives it. */
export const grantsIn = (list: Buffer | undefined): readonly Grant[] => {
  if (list === undefined || list.length < 4 || list.readUInt32LE(0) !== VERSION) return []
  const grants: Grant[] = []
  for (let at = 4; at + ENTRY <= list.length; at += ENTRY) {
    const tag = list.readUInt16LE(at)
    if (tag !== NAMED_USER && tag !== NAMED_GROUP) continue
    const to = tag === NAMED_USER ? "user" : "group"
    grants.push({ to, id: list.readUInt32LE(at + 4), permissions: list.readUInt16LE(at + 2) })
  }
  return grants
}

/** The first that is in no way known already. */
export const addedGrant = (given: readonly Grant[], known: readonly Grant[]): Grant | undefined =>
  given.find(
    ({ to, id, permissions }) =>
      !known.some((had) => had.to === to && had.id === id && (permissions & ~had.permissions) === 0),
  )
