/** A pattern that the sandbox could not read must not be passed over: it may be the one that hides something. */
import { parseGlob } from "../../manifest/values/globs.ts"
import type { CliSandbox, DriverContract } from "../../manifest/types.ts"
import type { Unenforceable } from "./kind.ts"
import { sealPaths } from "./paths.ts"

export const unreadablePattern = (
  { auth, source }: DriverContract,
  sandboxes: readonly Pick<CliSandbox, "fs">[],
): Unenforceable | undefined => {
  for (const sandbox of sandboxes) {
    const { read, write, deny, keep } = sealPaths(sandbox.fs, auth?.state.paths ?? [])
    for (const text of [...read, ...write, ...deny, ...keep]) {
      const parsed = parseGlob(text)
      if (!parsed.ok)
        return {
          control: "fs",
          reason: `${source.file}: a pattern of \`sandbox.fs\` cannot be used: ${parsed.message}`,
          fix: "correct the pattern, as in `notes/**/*.md`",
        }
    }
  }
  return undefined
}
