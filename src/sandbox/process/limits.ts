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

export const TREE = {
  /** `tree`: how long a killed tree may take to be gone; then the run is not settled and its layer is never used */
  goneMs: 20_000,
  /** `signal`: how often the program's first process is looked for while it is not there yet; `tree`: and its end */
  lookMs: 5,
} as const

export const RUN = {
  /** `watch-run`: how often the tree's CPU time is read; the run ends at most this late */
  cpuPollMs: 50,
} as const

export const TERMINAL = {
  /** `terminal`: bytes typed that wait here; then whoever types waits */
  inputBytes: 16 * 1024,
  /** `terminal`: how soon typing is tried again on a terminal whose program does not read */
  retryMs: 10,
} as const
