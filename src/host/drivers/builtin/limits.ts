/** Limits on the host's own functions: who owns each, its value, and what happens at it. */

const MiB = 1024 * 1024

export const BUILTIN = {
  /** `walk`: files and folders looked at by one listing or search; the call ends as `limit_exceeded` */
  entries: 200_000,
  /** `walk`: folders in each other; deeper ones end the call as `limit_exceeded` */
  depth: 256,
  /** `search`: bytes of a file that is searched; a larger one is left out, and told in a note */
  searchedBytes: 16 * MiB,
  /** `search`: steps that one line may cost the pattern; a longer line is left out, and told in a note */
  lineSteps: 4_000_000,
  /** `ignore`: bytes of one file of ignore rules; a larger one counts for nothing */
  ignoreBytes: MiB,
  /** `ignore`: rules that hold at once; further ones count for nothing */
  ignoreRules: 5_000,
} as const
