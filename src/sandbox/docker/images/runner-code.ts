/** The bridge as a folder that a container can start from: the interpreter and its text, nothing else. */
import { realpathSync } from "node:fs"
import { join } from "node:path"
import { copyFile, makeFolder } from "../../exact-modes.ts"
import { runnerText } from "./images.ts"

export const hostInterpreter = "/usr/bin/perl"

export const openRunnerCode = (dir: string, interpreter: string): string => {
  makeFolder(dir)
  copyFile(realpathSync(interpreter), join(dir, "perl"), 0o755)
  copyFile(runnerText("bridge.pl"), join(dir, "bridge.pl"))
  return dir
}
