/**
 * The folder that a launcher's private mounts go on: this program's own, never one that users have.
 *
 * Guarantees: it belongs to this user and nobody else can replace or write it; for root every sandbox user can pass
 * through it. The launcher covers it in its own mount namespace; on the machine it stays empty.
 */
import { chmodSync, lstatSync, mkdirSync, realpathSync } from "node:fs"
import { mountsFolder } from "../../data-folder/paths.ts"

type MountBase =
  | { readonly ok: true; readonly path: string }
  | { readonly ok: false; readonly message: string; readonly fix: string }

/** Root's: sandboxes run as other users, who could not pass through a closed data folder. */
const forRoot = ["/run/caisson", "/var/lib/caisson"]

const ownFolder = (path: string, uid: number, mode: number): string | undefined => {
  try {
    mkdirSync(path, { mode })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") return `${path}: ${(error as Error).message}`
  }
  try {
    const { mode: found, uid: owner } = lstatSync(path)
    if ((found & 0o170000) !== 0o040000) return `${path} is not a folder`
    if (owner !== uid) return `${path} belongs to another user (uid ${owner})`
    if ((found & 0o022) !== 0) return `${path} can be written by others (mode ${(found & 0o777).toString(8)})`
    // Whatever the umask left of it.
    chmodSync(path, mode)
    return undefined
  } catch (error) {
    return `${path}: ${(error as Error).message}`
  }
}

/** `data`: the host's data folder, which an ordinary user's base lies in. */
export const mountBase = (data: string, uid: number, candidates: readonly string[] = forRoot): MountBase => {
  const problems: string[] = []
  for (const path of uid === 0 ? candidates : [mountsFolder(data)]) {
    const problem = ownFolder(path, uid, uid === 0 ? 0o755 : 0o700)
    if (problem === undefined) return { ok: true, path: realpathSync(path) }
    problems.push(problem)
  }
  return {
    ok: false,
    message: `there is no folder for the sandboxes' private mounts: ${problems.join("; ")}`,
    fix:
      uid === 0
        ? `make one of ${candidates.join(" or ")} a folder of root's that others cannot write: \`install -d -m 755 ${candidates[0]}\``
        : `free disk space or mend the permissions of ${data}`,
  }
}
