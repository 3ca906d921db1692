/** Limits on the talk with a shim: who owns each, its value, and what happens at it. */

const MiB = 1024 * 1024

export const RUNNER = {
  /** `frames`: bytes of one frame from the tool; the call ends as `limit_exceeded` */
  frameBytes: 8 * MiB,
  /** `talk`: bytes of all frames of one call; the call ends as `limit_exceeded` */
  totalBytes: 64 * MiB,
  /** `talk`: frames of one call; the call ends as `limit_exceeded` */
  frames: 100_000,
  /** `frames`: bytes of what is asked; the call is refused. The shims take no more than 64 MiB. */
  requestBytes: 32 * MiB,
  /** `talk`: other tools that it asks for, refused ones included; the call ends as `limit_exceeded` */
  calls: 256,
  /** `talk`: bytes of one answer to that; the tool is told `limit_exceeded` instead */
  answerBytes: 8 * MiB,
  /** `frames`: depth of what a frame holds; the call ends as `output_parse_failed` */
  depth: 128,
  /** `talk`: characters of an error's message, and of each of its names, that are kept */
  messageChars: 4_096,
  nameChars: 200,
  names: 32,
} as const
