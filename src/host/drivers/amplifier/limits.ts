/** Limits on what a module of Amplifier's says: who owns each, its value, and what happens at it. */

const KiB = 1024

export const AMPLIFIER = {
  /** `discover`: tools of one module; the rest is left out, with a warning */
  tools: 64,
  /** `discover`: characters of a name; the tool is refused. Of a description; the rest is left out */
  nameChars: 200,
  descriptionChars: 2_000,
  /** `hooks`: bytes of what a hook is told of an event; a longer input or result is told by its first part */
  hookDataBytes: 4 * KiB * KiB,
  /** `answer`: characters of an error's own words that are kept */
  errorChars: 4_096,
} as const
