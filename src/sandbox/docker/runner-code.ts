/** The bridge as a folder that a container can start from: the interpreter and its text, nothing else. */
import { chmodSync, copyFileSync, mkdirSync, realpathSync } from "node:fs"
import { join } from "node:path"
import { runnerText } from "./images.ts"

export const hostInterpreter = "/usr/bin/perl"

export const openRunnerCode = (dir: string, interpreter: string): string => {
  mkdirSync(dir, { mode: 0o755 })
  copyFileSync(realpathSync(interpreter), join(dir, "perl"))
  chmodSync(join(dir, "perl"), 0o755)
  copyFileSync(runnerText("bridge.pl"), join(dir, "bridge.pl"))
  chmodSync(join(dir, "bridge.pl"), 0o644)
  return dir
}
