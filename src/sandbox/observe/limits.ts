/** What one observation may cost. */
export const OBSERVE = Object.freeze({
  /** different paths that are told apart; further ones are counted as lost */
  paths: 20_000,
  /** rows that leave the sandbox: files of one folder become a row of that folder, until they fit */
  rows: 600,
  /** so many files of one folder are told one by one */
  filesOfAFolder: 12,
  /** threads that wait for the next run */
  idleThreads: 2,
  pathBytes: 4096,
})
