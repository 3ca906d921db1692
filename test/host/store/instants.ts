/** Moments that tests name. */
import type { Instant } from "../../../src/host/store/instant.ts"

export const began: Instant = { wallMs: 1_000_000, boot: "boot-a", upMs: 50_000 }
export const later = (ms: number, at: Instant = began): Instant => ({
  ...at,
  wallMs: at.wallMs + ms,
  upMs: at.upMs + ms,
})
