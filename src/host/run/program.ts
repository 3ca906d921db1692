/**
 * From a command's first word to what is started.
 *
 * Guarantees: a bare name is looked for in the system's folders alone, never in the caller's PATH. A path is taken as it is
 * typed, from the folder that becomes /workspace: of what lies there, only what an interpreter of this machine runs can be
 * started, since nothing that a call could have written is; elsewhere the file itself is shown, and nothing beside it.
 */
import { dirname, join, relative, resolve } from "node:path"
import { realpathSync, statSync } from "node:fs"
import { shown } from "../../manifest/values/diagnostics.ts"
import { inside } from "../drivers/paths.ts"
import { locateSystemProgram, type Program, systemFolders } from "../drivers/program/program.ts"
import type { Failure } from "../failure.ts"

interface FoundCommand {
  readonly program: Program
  readonly script: readonly string[]
}

const missing = (message: string, hint: string): Failure => ({
  ok: false,
  code: "not_found",
  message,
  hint,
  details: { field: "command" },
})

const real = (path: string): string => {
  try {
    return realpathSync(path)
  } catch {
    return resolve(path)
  }
}
const isBelow = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`)

/** Folders of the sandbox's own, which cover what this machine has there. */
const COVERED = ["/tmp", "/var/tmp", "/proc", "/dev", "/run", inside.home, inside.workspace]

const byInterpreter = (
  { program: file, script: at }: { program: Program; script: string },
  word: string,
): FoundCommand | Failure => {
  const [first] = file.called ?? []
  if (first === undefined)
    return missing(
      `${shown(word)} is a program of its own and lies in the workspace, where nothing can be started`,
      "what a call could write is never started: run a script with its interpreter, or install the program in a system folder",
    )
  // What `env` starts is named in the script's own first line: its last interpreter runs it.
  const called = file.called?.at(-1) ?? first
  const interpreter = locateSystemProgram(called, [dirname(called), ...systemFolders])
  if (!interpreter.ok) return missing(interpreter.reason, "install its interpreter")
  return { program: interpreter.program, script: [at] }
}

export const findCommand = (word: string, workspace: string): FoundCommand | Failure => {
  if (!word.includes("/")) {
    const found = locateSystemProgram(word)
    if (found.ok) return { program: found.program, script: [] }
    return missing(
      `there is no program ${shown(word)}: ${found.reason}`,
      "install it, or write its path: `./NAME` for one in the workspace, or an absolute path",
    )
  }
  const root = real(workspace)
  const path = word.startsWith(`${inside.workspace}/`)
    ? join(root, relative(inside.workspace, word))
    : resolve(root, word)
  const facts = statSync(path, { throwIfNoEntry: false })
  if (facts === undefined) return missing(`there is no file ${shown(word)}`, "name an executable file")
  if (!facts.isFile()) return missing(`${shown(word)} is no file that can be run`, "name an executable file")
  if ((facts.mode & 0o111) === 0)
    return missing(
      `${shown(word)} cannot be run: it is not executable`,
      "run it with its interpreter, or make it executable",
    )
  const found = locateSystemProgram(path, [dirname(path), ...systemFolders])
  if (!found.ok) return missing(`${shown(word)} cannot be run: ${found.reason}`, "name an executable file")
  const { program } = found
  const [lexical, physical] = [path, join(real(dirname(path)), "")].map((each) => each.replace(/\/$/, ""))
  const within = [lexical, physical].find((each) => each !== undefined && isBelow(each, root))
  if (isBelow(path, root) || within !== undefined) {
    const below = isBelow(path, root) ? path : join(real(dirname(path)), program.name)
    return byInterpreter({ program, script: join(inside.workspace, relative(root, below)) }, word)
  }
  if (COVERED.some((folder) => isBelow(path, folder)))
    return missing(
      `${shown(word)} lies in ${COVERED.find((folder) => isBelow(path, folder))}, which a sandbox has of its own`,
      "run it from the workspace, or install it in a system folder",
    )
  return { program, script: [] }
}
