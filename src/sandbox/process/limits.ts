/** Limits around the processes of a call: who owns each, its value, and what happens at it. */

export const GROUP = {
  /** `cgroup`: how long a killed tree may take to leave its group, on a busy machine seconds; then the next start sweeps it */
  emptyMs: 10_000,
  /**
   * `cgroup`, version 1: what a call's sockets may hold in buffers, which that version does not count as memory; beyond
   * it the kernel leaves each socket its smallest buffer and drops datagrams
   */
  socketBytes: 32 * 1024 * 1024,
} as const
