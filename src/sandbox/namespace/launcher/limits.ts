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
  /** `parked-processes`: kept, each a shell of under a megabyte; a call that finds none waits for one of its own */
  ready: 2,
  /** `sandboxes`: a prepared sandbox that is not started within this no longer holds up the making of the next parked process */
  refillMs: 50,
} as const
