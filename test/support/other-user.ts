/**
 * Command lines as another user than the one that runs the tests.
 *
 * Guarantees: programs and files of this clone are there for that user, also where the clone lies in a folder that is closed
 * to others, as root's home is: then it is shown at another place, in a mount namespace of the program's own.
 * Assumes: root; for anybody else the words stay as they are.
 */
import { realpathSync, statSync } from "node:fs"
import { dirname, join } from "node:path"

const clone = realpathSync(join(import.meta.dirname, "../.."))
const SHOWN = "/mnt"
const show = 'mount --bind "$0" "$1" && shift && exec "$@"'

const isOpen = (folder: string): boolean =>
  (statSync(folder).mode & 0o001) !== 0 && (folder === "/" || isOpen(dirname(folder)))
const isShown = process.getuid?.() === 0 && !isOpen(clone)
const shown = (word: string): string => (word.startsWith(`${clone}/`) ? SHOWN + word.slice(clone.length) : word)

export const asUser = (
  ids: { readonly uid: number; readonly gid: number },
  words: readonly string[],
): readonly [string, ...string[]] => {
  const [program = "", ...rest] = words
  if (process.getuid?.() !== 0) return [program, ...rest]
  const as = ["setpriv", `--reuid=${ids.uid}`, `--regid=${ids.gid}`, "--clear-groups"] as const
  if (!isShown) return [...as, ...words]
  return [
    ...(["unshare", "--mount", "--propagation", "private", "sh", "-c", show, clone, SHOWN] as const),
    ...as,
    ...words.map(shown),
  ]
}
