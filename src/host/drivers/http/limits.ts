/**
 * The limits of kind http. Owner of all: the host; a driver cannot raise them. Time and the bytes of an answer are the
 * call's own limits (`wall_ms`, `output_kb`).
 */

/** Redirects of one request that are followed. Beyond: `upstream_error`. */
export const maxRedirects = 5

/** Interim (1xx) answers to one request. Beyond: `upstream_error`. */
export const maxInterim = 16

/** Bytes of an answer's head. Beyond: `upstream_error`. */
export const maxHeadBytes = 65_536

/** Bytes of a request's path with its query, and of one header. Beyond: `input_invalid`. */
export const maxPathBytes = 16_384
export const maxHeaderBytes = 8_192

/** Bytes of an answer that is no success kept for the error's details. Beyond: cut. */
export const errorBodyBytes = 4_096

/** What a server may ask to be left alone for. Beyond: taken for this. */
export const maxRetryAfterMs = 86_400_000
