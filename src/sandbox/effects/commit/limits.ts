/** Limits of a commit. At each the commit fails before the workspace is touched. */

/** bytes of one journal, written or read; owner: `journal.ts` */
export const JOURNAL_BYTES = 256 * 2 ** 20
/** bytes of the note that says where a transaction is staged; owner: `staging.ts` */
export const PLACE_BYTES = 4096
/** how long a commit or a recovery waits for another one on the same folder; owner: `lock.ts` */
export const LOCK_WAIT_MS = 120_000
/** how often it looks; owner: `lock.ts` */
export const LOCK_POLL_MS = 5
