/** What one observation may cost. */
export const OBSERVE = Object.freeze({
  /** different paths that are told apart at once; then what was seen becomes rows of folders, to make room */
  paths: 20_000,
  /** characters of them; then likewise: the memory is the host's, whose own limits count none of it */
  pathChars: 4 * 1024 * 1024,
  /** rows that leave the sandbox: files of one folder become a row of that folder, and then of those above, until they fit */
  rows: 600,
  /** so many files of one folder are told one by one */
  filesOfAFolder: 12,
  /** threads that wait for the next run */
  idleThreads: 2,
  pathBytes: 4096,
})
