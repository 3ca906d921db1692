/** Bounds of one question to a database. */

/** bytes that come over the wire for each byte of an answer that may be kept: rows are told with their names once */
export const wireFactor = 2
/** rows of an answer; a statement that has more is refused */
export const maxRows = 10_000
/** seconds that MySQL or MariaDB works on a statement whose call is gone: it does not look for its client meanwhile */
export const mysqlStatementSeconds = 600
/** characters of a statement that a caller writes to MySQL or MariaDB, which is read word by word */
export const statementChars = 65_536
/** characters of a database's own words about a failure */
export const wordChars = 300
/** a server that can look for itself ends what it does for nobody any more within this time */
export const goneMs = 1_000
/** the longest that a server can be told to take for a statement */
export const mostStatementMs = 2_147_483_647
