/** Limits around the processes of a call: who owns each, its value, and what happens at it. */

export const GROUP = {
  /** `cgroup`: how long a killed tree may take to leave its group, on a busy machine seconds; then the next start sweeps it */
  emptyMs: 10_000,
} as const
