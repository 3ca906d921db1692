/** The limits of recordings. Beyond: it is no recording, and the call says so. */

/** exchanges of one recording */
export const tapeExchanges = 20_000
/** bytes of one body, and of all of a recording */
export const tapeBodyBytes = 64 * 1024 * 1024
export const tapeBytes = 256 * 1024 * 1024
/** of one request or answer, in bytes */
export const tapeHeadBytes = 64 * 1024
/** faults that are told */
export const tapeFaults = 20
/** characters of a request that a message names */
export const tapeShown = 300
/** shorter values are no secrets that could be told from other text */
export const leastSecret = 8
