/** Bounds of one question to a database. */

/** bytes that come over the wire for each byte of an answer that may be kept: rows are told with their names once */
export const wireFactor = 2
/** rows of an answer; a statement that has more is refused */
export const maxRows = 10_000
/** characters of a database's own words about a failure */
export const wordChars = 300
