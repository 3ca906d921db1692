/** Limits of the namespace backend: who owns each, its value, and what happens at it. */

export const LAUNCHER = {
  /** `launch`: Node takes a second to start on a slow machine; one that needs longer than this hangs and is killed */
  readyMs: 60_000,
  /** `conversation`: how often a launcher with work is asked for a sign of life; a disk can hold a live one up for long */
  signMs: 30_000,
  /** `conversation`: signs that may stay out; then it is killed, and what it was asked ends */
  signsMissed: 4,
} as const
