/** The limits of conformance runs. Beyond: the case fails, or its report is cut, and says so. */

/** files and bytes of one example's folder */
export const exampleFiles = 2000
export const exampleBytes = 64 * 1024 * 1024
/** characters of a value that a report shows */
export const shownChars = 2000
/** cases of one run */
export const mostCases = 10_000
/** of what a failed run was kept from, the rest is not told */
export const mostStopped = 8
