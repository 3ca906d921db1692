/** Limits of the namespace backend: who owns each, its value, and what happens at it. */

export const LAUNCHER = {
  /** `launch`: one that is not ready and used no processor for so long hangs and is killed */
  readyMs: 60_000,
  /** `launch`: so many of these may pass while it gets on, on a machine that has little time for it; then it is killed */
  readyPeriods: 10,
  /** `conversation`: how often a launcher with work is asked for a sign of life; a disk can hold a live one up for long */
  signMs: 30_000,
  /** `conversation`: signs that may stay out; then it is killed, and what it was asked ends */
  signsMissed: 4,
  /** `backend`: a sandbox that a live launcher has not made ready within this is not waited for any longer */
  prepareMs: 120_000,
  /** `running`: a program that has not begun within this is stopped, and nothing was run */
  beginMs: 120_000,
  /** `launch`, for `running` and `let-go`: a launcher that was told to stop or to let go, has not answered and used no processor for so long is not waited for: what the sandbox wrote is not used */
  stopMs: 3_000,
  /** the same: so many of these may pass while it gets on; then it is not waited for either */
  stopPeriods: 10,
  /** the same: an answer that comes sooner costs no look at the processor's time */
  watchAfterMs: 100,
} as const

export const PARKED = {
  /** `parked-processes`: kept, each a shell of under a megabyte; what finds none waits for one of its own */
  ready: 2,
  /** `sandboxes`: a prepared sandbox that is not started within this no longer holds up the making of the next ones */
  refillMs: 50,
  /** the same: a call whose sandbox was let go of has its answer by then */
  afterMs: 5,
} as const

export const READY = {
  /** `ready-sandboxes`: that wait for calls of one shape, each three processes of a few megabytes together; more calls at once make their own */
  perShape: 4,
  /** the same, of all shapes; one more takes the place of one whose shape was not asked for the longest */
  total: 12,
  /** the same: made at once beside calls; the others are made after them */
  making: 1,
  /** the same: calls of the last so many milliseconds are taken to come again */
  coverMs: 250,
  /** the same: a shape that no call asked for within this keeps none */
  idleMs: 60_000,
  /** the same: what one whose program is there already counts for, of `total`: an interpreter of some forty megabytes */
  begunCounts: 3,
  /** `waiting-sandbox`: a program that has not said within this that it waits is killed, and started with its job from then on */
  waitsMs: 10_000,
  /** the same: one that used more before its call came is dropped when that is seen, and started with its job from then on */
  waitsCpuMs: 10_000,
} as const
