/**
 * What a home that is kept in memory holds, as plain data: it crosses process borders, and whoever keeps it encrypts it.
 * Types alone. Paths are below the home, escaped as everywhere (`effects/names.ts`), folders before what lies in them.
 */
interface Named {
  readonly path: string
  /** permission bits; a link has none */
  readonly mode: number
}
export type HomeEntry = Named &
  (
    | { readonly kind: "folder" }
    | { readonly kind: "file"; readonly content: Uint8Array; readonly mtimeMs: number }
    | { readonly kind: "link"; readonly target: string }
  )
export type HomeContent = readonly HomeEntry[]

/** What a home holds once its program ended; or why nobody can keep that. */
export type HomeAfter =
  | { readonly ok: true; readonly content: HomeContent }
  | { readonly ok: false; readonly message: string }
