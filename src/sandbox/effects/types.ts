/** The words for what a call changed. Every path is relative to the root that the layer covers, `/`-separated. */

export type EffectKind =
  | "create"
  | "modify"
  | "delete"
  | "mkdir"
  | "rmdir"
  | "chmod"
  | "symlink"
  | "rename"
  | "hardlink"
  | "xattr"
  | "touch"
  | "special"

/**
 * One observed change. `before`/`after` are digests (`sha256:…`) of file contents or of a symlink's target,
 * `touch` is a file whose content is as before and whose modification time is not.
 * `from` is the old path of a rename, or the effect's path whose file a hard link shares. `special` is a fifo,
 * socket or device, which can never be committed. Bytes of a name that are not UTF-8, and backslashes, are `\xHH`.
 */
export interface Effect {
  readonly kind: EffectKind
  readonly path: string
  readonly before?: string
  readonly after?: string
  readonly mode?: { readonly before?: number; readonly after?: number }
  readonly from?: string
  readonly size?: number
  /** where a new or changed symlink leads, escaped like a path */
  readonly target?: string
  /** the path is a folder (on `chmod` and `xattr`, whose kind does not say) */
  readonly directory?: true
  /** why this effect can never be committed, whatever the contract says (setuid, special file, …) */
  readonly refused?: string
}

/** What a layer holds, complete, sorted by path; deletions are never summarised away. */
export interface WriteSet {
  readonly effects: readonly Effect[]
  /** bytes of new file content */
  readonly bytes: number
  /** folders with a change in them that look like a bare git repository once the write set is in place */
  readonly repositories?: readonly string[]
}
