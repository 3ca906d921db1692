/** Limits of what is recorded of a call's network: who owns each, its value, and what happens at it. */

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
