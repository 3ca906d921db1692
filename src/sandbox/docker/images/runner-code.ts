/**
 * The bridge as a folder that a container can start from: the interpreter and its text, nothing else.
 *
 * Guarantees: a portable one brings the machine's own Perl with its loader and all that it loads, so that the bridge is this
 * host's program on any root, one without Perl or of another C library included.
 */
import { execFileSync } from "node:child_process"
import { realpathSync } from "node:fs"
import { basename, join } from "node:path"
import { copyFile, makeFolder } from "../../exact-modes.ts"
import { runnerText } from "./images.ts"

export const hostInterpreter = "/usr/bin/perl"

export const openRunnerCode = (dir: string, interpreter: string): string => {
  makeFolder(dir)
  copyFile(realpathSync(interpreter), join(dir, "perl"), 0o755)
  copyFile(runnerText("bridge.pl"), join(dir, "bridge.pl"))
  return dir
}

const loader = process.arch === "arm64" ? "/lib/ld-linux-aarch64.so.1" : "/lib64/ld-linux-x86-64.so.2"

/** Its files: path in its own folder → path on the host. */
export const portablePerl = (): Readonly<Record<string, string>> => {
  const listed = execFileSync(loader, ["--list", hostInterpreter], { encoding: "utf8", env: {} })
  const libraries = Array.from(listed.matchAll(/=> (\/\S+) \(0x/g), ([, path = ""]) => path)
  return {
    perl: realpathSync(hostInterpreter),
    "ld.so": realpathSync(loader),
    ...Object.fromEntries(libraries.map((path) => [`lib/${basename(path)}`, realpathSync(path)])),
  }
}

/** The words that start it where its folder is seen as this one. */
export const startsPortable = (folder: string): readonly string[] => [
  `${folder}/ld.so`,
  "--library-path",
  `${folder}/lib`,
  `${folder}/perl`,
]

export const openPortableCode = (dir: string): string => {
  makeFolder(dir)
  makeFolder(join(dir, "lib"))
  for (const [name, source] of Object.entries(portablePerl())) copyFile(source, join(dir, name), 0o755)
  copyFile(runnerText("bridge.pl"), join(dir, "bridge.pl"))
  return dir
}
