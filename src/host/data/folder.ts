/**
 * The data folder: keys, evidence, homes and journals of one user's host.
 *
 * Guarantees: it exists, is a real folder of this user's, closed to everybody else, and holds the paths named here;
 * anything else is refused with the command that mends it. A folder that holds nothing yet, or only the operator's
 * config, is closed here: there is nothing in it that others could have read or replaced. It and a workspace never lie in one another: a tool that
 * can write the evidence or the policy could rewrite both.
 */
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, realpathSync } from "node:fs"
import { homedir, userInfo } from "node:os"
import { dirname, isAbsolute, join, resolve } from "node:path"
import { ALWAYS_THERE, CONFIG_NAME } from "../../data-folder/paths.ts"
import { HostStartError } from "../start-error.ts"

/** An empty or relative `HOME` would be whatever folder we were started in, with a config that came along with it. */
const homeOf = (home: string): string => (isAbsolute(home) ? home : userInfo().homedir)

export const dataFolderOf = (
  named: string | undefined,
  env: Readonly<Record<string, string | undefined>> = process.env,
): string => {
  const fromEnv = env["CAISSON_DATA"]
  return resolve(named ?? (fromEnv === undefined || fromEnv === "" ? join(homeOf(homedir()), ".caisson") : fromEnv))
}

/** Empty, or with nothing but a config that nobody else can have put there. */
const isUnused = (folder: string, mode: number): boolean => {
  const names = readdirSync(folder)
  return names.length === 0 || ((mode & 0o022) === 0 && names.every((name) => name === CONFIG_NAME))
}

/** Step by step: Node's own way asks for ever where a file system takes no folders (`/proc`). */
const makeFolders = (folder: string): void => {
  if (existsSync(folder)) return
  const parent = dirname(folder)
  if (parent !== folder) makeFolders(parent)
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error
  }
}

/** Make or check the folder; answers its real path. */
export const openDataFolder = (folder: string): string => {
  try {
    makeFolders(folder)
  } catch (error) {
    throw new HostStartError(
      "internal",
      `the data folder ${folder} cannot be made: ${(error as Error).message}`,
      "set CAISSON_DATA to a folder that you can write",
    )
  }
  const found = lstatSync(realpathSync(folder))
  const me = process.getuid?.() ?? found.uid
  if (!found.isDirectory())
    throw new HostStartError("internal", `the data folder ${folder} is not a folder`, "set CAISSON_DATA to a folder")
  if (found.uid !== me)
    throw new HostStartError(
      "internal",
      `the data folder ${folder} belongs to another user (uid ${found.uid})`,
      "set CAISSON_DATA to a folder of your own",
    )
  const isOpen = (found.mode & 0o077) !== 0
  if (isOpen && isUnused(folder, found.mode)) chmodSync(folder, 0o700)
  // Looked at again, now that nobody else can put anything there.
  if (isOpen && !isUnused(folder, found.mode))
    throw new HostStartError(
      "internal",
      `the data folder ${folder} is open to others (mode ${(found.mode & 0o777).toString(8)})`,
      `chmod 700 ${folder}`,
    )
  const real = realpathSync(folder)
  try {
    for (const folderIn of ALWAYS_THERE) {
      mkdirSync(folderIn(real), { recursive: true, mode: 0o700 })
      chmodSync(folderIn(real), 0o700)
    }
  } catch (error) {
    throw new HostStartError(
      "internal",
      `the data folder ${folder} cannot be written: ${(error as Error).message}`,
      "mend its permissions or free disk space, or set CAISSON_DATA to a folder that you can write",
    )
  }
  return real
}
