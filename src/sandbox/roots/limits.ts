/** Limits of the views of the root: who owns each, its value, and what happens at it. */

/** `configuration`: a folder of /etc with more is shown as a mount of its own, which every sandbox then pays for */
export const COPIED = {
  entries: 64,
  bytes: 1024 * 1024,
  /** what was copied is compared with what is there no more often than this */
  lookedAtMs: 2000,
} as const

/**
 * `root-views`: kept mounted, those not used for longest go first; each is some ten mounts, and whatever sets up a
 * sandbox reads the list of all mounts again and again
 */
export const KEPT_VIEWS = 12
