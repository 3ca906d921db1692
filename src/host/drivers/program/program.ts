/**
 * From a program's name in a manifest to a file on this machine.
 *
 * Guarantees: a name is only looked up in fixed system folders, never in the caller's PATH; a vendored program is a
 * regular executable file that stays inside the driver's folder when every link is followed; scripts come with the
 * chain of interpreters that the kernel will start (C-51).
 * Assumes: an attacker cannot write to the system folders. Does not: run anything.
 */
import { accessSync, closeSync, constants, openSync, readSync, realpathSync, statSync } from "node:fs"
import path from "node:path"

/** A program found on this machine, and what starts it. */
export interface Program {
  /** the name it was asked for, for argv[0] */
  readonly name: string
  /** where the name leads before links are followed */
  readonly found: string
  /** absolute, without links */
  readonly path: string
  /** `#!` interpreters in the order the kernel starts them: absolute, without links (`env`, then what it starts) */
  readonly interpreters: readonly string[]
  /** the same as scripts name them, links not followed (`/bin/sh`): what has to be visible for the kernel to find them */
  readonly called?: readonly string[]
  /** set for a vendored program: the driver's folder, which must be visible (read-only) for it to run */
  readonly bundle?: string
  /** where that is seen inside; absent: where drivers' folders are */
  readonly mount?: string
  /** what it needs to find its own parts */
  readonly env?: Readonly<Record<string, string>>
  readonly identity: {
    readonly mtimeMs: number
    readonly ctimeMs: number
    readonly ino: number
    readonly size: number
  }
}

export const systemFolders: readonly string[] = Object.freeze([
  "/usr/local/bin",
  "/usr/bin",
  "/bin",
  "/usr/sbin",
  "/usr/local/sbin",
])

export type Located = { readonly ok: true; readonly program: Program } | { readonly ok: false; readonly reason: string }

/** The kernel reads no more of a first line than this, and follows no longer chain. */
const shebangBytes = 256
const maxInterpreters = 4

const isNative = (head: string): boolean => head.startsWith("\x7fELF")

type Executable =
  | { readonly ok: true; readonly path: string; readonly identity: Program["identity"] }
  | { readonly ok: false; readonly reason: string }

const executableAt = (file: string): Executable => {
  try {
    // Most names are in one of several folders, so not being there is the common answer and costs no exception.
    if (statSync(file, { throwIfNoEntry: false }) === undefined) return { ok: false, reason: "is not there" }
    const real = realpathSync.native(file)
    const facts = statSync(real)
    if (!facts.isFile()) return { ok: false, reason: "is not a regular file" }
    accessSync(real, constants.X_OK)
    const { mtimeMs, ctimeMs, ino, size } = facts
    return { ok: true, path: real, identity: { mtimeMs, ctimeMs, ino, size } }
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : ""
    if (code === "EACCES") return { ok: false, reason: "is not executable" }
    return { ok: false, reason: code === "ENOENT" || code === "ENOTDIR" ? "is not there" : `cannot be used (${code})` }
  }
}

/** The first bytes; nothing of a program that may be run but not read. */
const headOf = (file: string): string | undefined => {
  const buffer = Buffer.alloc(shebangBytes)
  let read = 0
  let descriptor: number
  try {
    descriptor = openSync(file, "r")
  } catch {
    return undefined
  }
  try {
    read = readSync(descriptor, buffer, 0, shebangBytes, 0)
  } finally {
    closeSync(descriptor)
  }
  return buffer.toString("latin1", 0, read)
}

/** What follows `#!`, as the kernel reads it: a carriage return is part of it. */
const firstLine = (head: string): string => (head.slice(2).split("\n", 1)[0] ?? "").replace(/^[\t ]+|[\t ]+$/g, "")

/** `env [-S] [NAME=value…] PROGRAM`: what env starts. */
const startedByEnv = (argument: string): string | undefined =>
  argument.split(/[\t ]+/).find((part) => part !== "" && !part.startsWith("-") && !part.includes("="))

const inFolders = (
  name: string,
  folders: readonly string[],
): { found: string; file: Extract<Executable, { ok: true }> } | undefined => {
  for (const folder of folders) {
    const found = path.join(folder, name)
    const file = executableAt(found)
    if (file.ok) return { found, file }
  }
  return undefined
}

type Chain =
  | { readonly ok: true; readonly interpreters: readonly string[]; readonly called: readonly string[] }
  | { readonly ok: false; readonly reason: string }

const interpretersOf = (file: string, folders: readonly string[]): Chain => {
  const interpreters: string[] = []
  const called: string[] = []
  let at = file
  for (;;) {
    const head = headOf(at)
    if (head === undefined || isNative(head)) return { ok: true, interpreters, called }
    if (!head.startsWith("#!"))
      return { ok: false, reason: "it begins with no `#!` line, as in `#!/bin/sh`, and is no program of this machine" }
    const line = firstLine(head)
    if (line.endsWith("\r"))
      return { ok: false, reason: "its `#!` line ends with a carriage return; save it with Unix line endings (\\n)" }
    if (interpreters.length >= maxInterpreters) return { ok: false, reason: "its chain of interpreters is too long" }
    const [, interpreter = "", argument = ""] = /^(\S*)[\t ]*(.*)$/.exec(line) ?? []
    if (!path.isAbsolute(interpreter))
      return { ok: false, reason: `its interpreter \`${interpreter}\` is not an absolute path` }
    const found = executableAt(interpreter)
    if (!found.ok) return { ok: false, reason: `its interpreter ${interpreter} ${found.reason}` }
    interpreters.push(found.path)
    called.push(interpreter)
    at = found.path
    if (path.basename(interpreter) !== "env") continue
    const name = startedByEnv(argument)
    const started = name === undefined ? undefined : inFolders(path.basename(name), folders)
    if (started === undefined)
      return { ok: false, reason: `its interpreter \`${name ?? "env"}\` is not in ${folders.join(", ")}` }
    interpreters.push(started.file.path)
    called.push(started.found)
    at = started.file.path
  }
}

const programOf = (
  name: string,
  found: string,
  file: Extract<Executable, { ok: true }>,
  folders: readonly string[],
  bundle?: string,
): Located => {
  const chain = interpretersOf(file.path, folders)
  if (!chain.ok) return { ok: false, reason: `${found}: ${chain.reason}` }
  const { identity } = file
  const program = {
    name,
    found,
    path: file.path,
    interpreters: chain.interpreters,
    ...(chain.called.length === 0 ? {} : { called: chain.called }),
    identity,
    ...(bundle === undefined ? {} : { bundle }),
  }
  return { ok: true, program }
}

/** A bare name, or an absolute path into one of the folders. */
export const locateSystemProgram = (name: string, folders: readonly string[] = systemFolders): Located => {
  if (name.includes("/") && !folders.includes(path.dirname(name))) {
    return { ok: false, reason: `\`${name}\` is not in ${folders.join(", ")}` }
  }
  const base = path.basename(name)
  if (base === "" || base === "." || base === ".." || name.includes("\0"))
    return { ok: false, reason: `\`${name}\` is not a program's name` }
  const found = inFolders(base, name.includes("/") ? [path.dirname(name)] : folders)
  if (found === undefined) return { ok: false, reason: `\`${name}\` is not in ${folders.join(", ")}` }
  return programOf(base, found.found, found.file, folders)
}

/** A program that the driver brings along, relative to its manifest's folder. */
export const locateVendoredProgram = (
  relative: string,
  bundle: string,
  folders: readonly string[] = systemFolders,
): Located => {
  const outside = { ok: false, reason: `\`${relative}\` leads out of the driver's folder` } as const
  if (path.isAbsolute(relative) || relative.includes("\0")) return outside
  let root: string
  try {
    root = realpathSync(bundle)
  } catch {
    return { ok: false, reason: "the driver's folder is not there" }
  }
  const wanted = path.join(root, relative)
  if (!wanted.startsWith(`${root}${path.sep}`)) return outside
  const file = executableAt(wanted)
  if (!file.ok) return { ok: false, reason: `\`${relative}\` in the driver's folder ${file.reason}` }
  if (!file.path.startsWith(`${root}${path.sep}`)) return outside
  return programOf(path.basename(relative), wanted, file, folders, root)
}
