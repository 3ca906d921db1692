/** Limits on reading a layer. At the limit the whole layer is refused; nothing is cut short in silence. */
export interface LayerLimits {
  /** effects in one write set */
  readonly maxEffects: number
  /** apparent bytes hashed in all, holes of sparse files included */
  readonly maxDigestBytes: number
  /** bytes of holes in new and changed files: they cost the writer nothing and the reader as much as data */
  readonly maxHoleBytes: number
  /** bytes of one path below the layer's root; the kernel takes 4096 with the root in front */
  readonly maxPathBytes: number
  /** bytes of all paths and link targets as a report spells them, so that a report can always be written */
  readonly maxReportBytes: number
  /** milliseconds that reading may take */
  readonly maxReadMs: number
}

export const DEFAULT_LAYER_LIMITS: LayerLimits = {
  maxEffects: 200_000,
  maxDigestBytes: 32 * 2 ** 30,
  maxHoleBytes: 2 * 2 ** 30,
  maxPathBytes: 3500,
  maxReportBytes: 64 * 2 ** 20,
  maxReadMs: 120_000,
}

/** Deleted files are hashed for the record up to this many bytes in all; beyond it `before` is left out. */
export const DELETED_DIGEST_BYTES = 64 * 2 ** 20

export type LayerRefusal =
  | "too-many-effects"
  | "too-many-bytes"
  | "path-too-long"
  | "too-much-to-report"
  | "too-slow"
  | "unsupported-layer"
  | "same-directory"
  | "unstable"

/** The layer cannot be read as a write set, so nothing of it may be committed. */
export class LayerRefused extends Error {
  readonly code: LayerRefusal
  constructor(code: LayerRefusal, message: string) {
    super(message)
    this.name = "LayerRefused"
    this.code = code
  }
}
