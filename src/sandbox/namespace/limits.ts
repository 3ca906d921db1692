/** Limits of the namespace backend: who owns each, its value, and what happens at it. */

export const LAUNCHER = {
  /** `launch`: Node takes a second to start on a slow machine; one that needs longer than this hangs and is killed */
  readyMs: 60_000,
  /** `conversation`: how often a launcher with work is asked for a sign of life; a disk can hold a live one up for long */
  signMs: 30_000,
  /** `conversation`: signs that may stay out; then it is killed, and what it was asked ends */
  signsMissed: 4,
  /** `cgroup`: how long a killed tree may take to leave its group, on a busy machine seconds; then the next start sweeps it */
  groupEmptyMs: 10_000,
} as const

export const TAPS = {
  /** of each tap; packets beyond it are counted as unnamed attempts */
  bufferBytes: 256 * 1024,
  /** targets that one call's record names; attempts at further ones are counted together */
  targets: 256,
  /** how often the taps are emptied while a call runs */
  drainMs: 25,
  /** packets taken from one tap in one go; the rest waits for the next, so that a flood does not hold up other calls */
  perTurn: 2048,
  /** ports in a tap's filter, which is charged to the socket; those beyond are shown and judged afterwards */
  filteredPorts: 256,
} as const
