/**
 * The limits of turning an input into a command and a result, each with its value and what happens at it.
 *
 * Guarantees: every limit of this folder is here. Owner of all: the host; a contract cannot raise them.
 */
import { hostLimits } from "../limits.ts"

/** Bytes of one argument. The kernel's own limit is 128 KiB with the final NUL. Beyond: `input_invalid`. */
export const maxArgumentBytes = 131_071

/** Bytes of all arguments, a NUL each: half of what the kernel allows with an 8 MiB stack. Beyond: `input_invalid`. */
export const maxArgvBytes = 1_048_576

/** Arguments of one command. Beyond: `input_invalid`. */
export const maxArgvElements = 16_384

/** Bytes of a workspace path and of one of its segments, as the kernel has them. Beyond: `input_invalid`. */
export const maxPathBytes = 4_095
export const maxPathSegmentBytes = 255

/** Bytes of a failed program's error stream kept in the error's details; the tail is kept. */
export const errorTailBytes = hostLimits.errorOutputBytes.value

/** Nesting of parsed output. Beyond: `output_parse_failed`. */
export const maxOutputDepth = 256

/** Binary output beyond this carries a note. */
export const largeBinaryBytes = 10_485_760

/** Attempts of one call, whatever a contract or driver asks; and the longest pause between two. Beyond: cut to it. */
export const maxAttempts = 10
export const maxBackoffMs = 30_000

/** Problems of one input that a message names, and characters of the example in its hint. Beyond: a count; cut. */
export const shownFaults = 8
export const shownExampleChars = 300

/** Characters of an output that did not match its contract shown in the error's details. Beyond: cut. */
export const shownOutputChars = 200
