/** Limits of what is proposed from runs. What is over them is told, and not proposed. */
export const limits = {
  /** paths below a folder that the run made, up to which each is named */
  namedBelow: 4,
  /** globs of a list */
  globs: 200,
  /** hosts, and programs */
  names: 100,
  /** receipts that a comment cites */
  cited: 3,
  /** how often a run's time is allowed, and the least in milliseconds */
  timeFactor: 10,
  leastTimeMs: 10_000,
  /** how often what a run printed, sent and got is allowed, and the least in bytes */
  bytesFactor: 10,
  leastBytes: 65_536,
} as const
