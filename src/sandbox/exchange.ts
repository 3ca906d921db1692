/** Files that are handed to a program in a folder of its own, and taken from there once it is over. Types alone. */

interface ExchangedFile {
  /** one plain name in the folder */
  readonly name: string
  /** of the workspace, `/`-separated, without `.` or `..` */
  readonly path: string
}
export interface Exchange {
  readonly inputs: readonly (ExchangedFile & { readonly writable: boolean })[]
  readonly outputs: readonly ExchangedFile[]
}

/** Where the folder is inside a sandbox. */
export const EXCHANGE = "caisson-files"

/** Why a file is not handed over. */
export type StagingFault =
  | "absent"
  /** it is a link, or lies behind one */
  | "link"
  /** not the driver's to see */
  | "hidden"
  | "outside"
  | "not_a_file"
  | "not_a_folder"
  /** the workspace's owner may not read it */
  | "forbidden"
  /** written to or swapped while it was read */
  | "changed"
  | "too_large"
  | "too_many"
  | "full"
  | "ended"

/** What was handed over: these very bytes. */
export type StagedInput = ExchangedFile & { readonly size: number; readonly digest: string }
export type TakenOutput = ExchangedFile &
  (
    | { readonly state: "written"; readonly size: number; readonly digest: string }
    /** as it was handed over, so that there is nothing to write */
    | { readonly state: "unchanged"; readonly size: number; readonly digest: string }
    /** nothing was there */
    | { readonly state: "absent" }
    /** something was there that is no file */
    | { readonly state: "refused"; readonly why: string }
    /** it could not be written to its place in the workspace */
    | { readonly state: "failed"; readonly why: string }
  )
export interface Exchanged {
  readonly inputs: readonly StagedInput[]
  readonly outputs: readonly TakenOutput[]
}
