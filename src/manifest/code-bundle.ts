/**
 * The files that a driver is composed of (AIP-26), and the one of them whose function is called.
 *
 * Guarantees: paths inside a bundle neither lead out of it nor name anything odd; what is taken from elsewhere lies below
 * one of the folders beside it. Does not: read any of those files; whoever puts the bundle together does.
 */

export type CodeSource =
  | { readonly from: "inline"; readonly path: string; readonly content: string }
  | {
      readonly from: "local"
      /** absolute: where `path` is looked for, in order, and what it may not leave */
      readonly bases: readonly string[]
      /** relative; `.`: the folder itself */
      readonly path: string
      /** where it is put; absent: a folder's files at the root, a file under its own path */
      readonly as?: string
      /** of a folder's files, those whose names match */
      readonly glob?: string
    }

export interface CodeBundle {
  /** last wins */
  readonly sources: readonly CodeSource[]
  /** the file whose function is called, inside the bundle */
  readonly run: string
}
