/**
 * Node, npm and Python on this machine, and how each is seen in a sandbox, wherever it lies.
 *
 * Guarantees: the host's own Node, or the one that the operator names, and a system Python, or the operator's (a virtual
 * environment too), are found by fixed places alone, never by the caller's PATH. What lies outside the system's folders
 * is mounted read-only: Node at a place of its own, Python where it lies, because it finds its library by that path.
 * Assumes: what the operator names is the operator's to show. Does not: run anything.
 */
import { accessSync, constants, lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs"
import { basename, dirname, isAbsolute, join, resolve } from "node:path"
import type { OperatorConfig } from "../config/types.ts"

export interface Interpreter {
  /** `executables.program` */
  readonly program: string
  /** argv[0] */
  readonly inside: string
  /** to be added to `executables.bundles` */
  readonly bundles: Readonly<Record<string, string>>
  /** what it starts: name → host path; absent: nothing */
  readonly spawn?: Readonly<Record<string, string>>
  /** `node24`, `python3.11`: what packages are chosen for */
  readonly language: string
}

export type FoundInterpreter =
  | { readonly ok: true; readonly value: Interpreter }
  | { readonly ok: false; readonly reason: string; readonly fix: string }

/** Shown in every sandbox as they are. */
const SYSTEM = ["/usr/bin", "/usr/local/bin", "/usr/sbin", "/usr/local/sbin"]
/** The kernel follows no more. */
const MOST_LINKS = 40
const NODE_INSIDE = "/opt/node/bin"

const isProgram = (file: string): boolean => {
  try {
    accessSync(file, constants.X_OK)
    return statSync(file).isFile()
  } catch {
    return false
  }
}

/** In a folder whose programs a sandbox shows by name, links followed. */
const isSystem = (file: string): boolean => {
  try {
    return SYSTEM.includes(realpathSync(dirname(file))) && realpathSync(file).startsWith("/usr/")
  } catch {
    return false
  }
}

const missing = (file: string, setting: string): FoundInterpreter => ({
  ok: false,
  reason: `${file} is no program that this host can start`,
  fix: `correct \`interpreters.${setting}\` in caisson.yaml, or take it out`,
})

export const findNode = ({ interpreters }: Pick<OperatorConfig, "interpreters">): FoundInterpreter => {
  const wanted = interpreters.node ?? process.execPath
  if (!isAbsolute(wanted) || !isProgram(wanted)) return missing(wanted, "node")
  const language = interpreters.node === undefined ? `node${process.versions.node.split(".", 1)[0]}` : `node ${wanted}`
  if (isSystem(wanted)) return { ok: true, value: { program: wanted, inside: wanted, bundles: {}, language } }
  const real = realpathSync(wanted)
  return {
    ok: true,
    value: {
      program: real,
      inside: join(NODE_INSIDE, basename(real)),
      bundles: { [dirname(real)]: NODE_INSIDE },
      language,
    },
  }
}

/** `home` of a virtual environment: where the Python is that it was made from. */
const homeOf = (environment: string): string | undefined => {
  try {
    const text = readFileSync(join(environment, "pyvenv.cfg"), "utf8")
    const home = /^home\s*=\s*(.+?)\s*$/m.exec(text)?.[1]
    return home !== undefined && isAbsolute(home) ? home : undefined
  } catch {
    return undefined
  }
}

/** Shown whole to every program, so that nothing of them has to be mounted. */
const isShown = (folder: string): boolean => folder === "/usr" || folder.startsWith("/usr/")

/** Where the links of a virtual environment leave it for the system's own program: all names from there on must show. */
const firstSystem = (file: string): string | undefined => {
  let at = file
  for (let hops = 0; hops < MOST_LINKS; hops += 1) {
    if (SYSTEM.includes(dirname(at))) return at
    if (lstatSync(at, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return undefined
    at = resolve(dirname(at), readlinkSync(at))
  }
  return undefined
}

/** Places of a sandbox's own, where nothing of the machine's shows. */
const OWN = ["/tmp", "/var", "/workspace", "/home/tool", "/run", "/proc", "/dev", "/etc"]

export const findPython = ({ interpreters }: Pick<OperatorConfig, "interpreters">): FoundInterpreter => {
  const wanted = interpreters.python ?? ["/usr/bin/python3", "/usr/local/bin/python3"].find(isProgram)
  if (wanted === undefined)
    return {
      ok: false,
      reason: "there is no python3 in /usr/bin or /usr/local/bin",
      fix: "run `apt-get install python3 python3-pip`, or name one as `interpreters.python` in caisson.yaml",
    }
  if (!isAbsolute(wanted) || !isProgram(wanted)) return missing(wanted, "python")
  const real = realpathSync(wanted)
  const language = /python\d+\.\d+/.exec(basename(real))?.[0] ?? "python3"
  if (isSystem(wanted)) return { ok: true, value: { program: wanted, inside: wanted, bundles: {}, language } }
  const environment = dirname(dirname(wanted))
  const base = homeOf(environment)
  const folders = [environment, ...(base === undefined ? [] : [dirname(base)]), dirname(dirname(real))]
  const shown = [...new Set(folders)].filter((folder) => !isShown(folder) && folder !== "/")
  const covered = shown.find((folder) => OWN.some((own) => folder === own || folder.startsWith(`${own}/`)))
  if (covered !== undefined)
    return {
      ok: false,
      reason: `${covered} cannot be shown where it lies: a sandbox has something of its own there`,
      fix: `make the environment of \`interpreters.python\` in another folder than ${OWN.join(", ")}`,
    }
  // The file itself where it is a system's; a virtual environment's is a link to it, which leads there inside too.
  return {
    ok: true,
    value: {
      program: firstSystem(wanted) ?? wanted,
      inside: wanted,
      bundles: Object.fromEntries(shown.map((folder) => [folder, folder])),
      language,
    },
  }
}

interface Npm {
  /** its program, as Node is told to run it */
  readonly inside: string
  readonly bundles: Readonly<Record<string, string>>
}
/** Debian's own lies among the packages that it needs, in a folder that every sandbox shows. */
const DEBIAN_NPM = "/usr/share/nodejs/npm"
const NPM_INSIDE = "/opt/npm"

/** What a Node installation of this machine brings along. */
export const findNpm = (node: string): Npm | undefined => {
  const folder = [
    join(dirname(dirname(node)), "lib/node_modules/npm"),
    "/usr/lib/node_modules/npm",
    "/usr/local/lib/node_modules/npm",
    DEBIAN_NPM,
  ].find((each) => statSync(join(each, "bin/npm-cli.js"), { throwIfNoEntry: false })?.isFile() === true)
  if (folder === undefined) return undefined
  const own = folder !== DEBIAN_NPM
  return { inside: join(own ? NPM_INSIDE : folder, "bin/npm-cli.js"), bundles: own ? { [folder]: NPM_INSIDE } : {} }
}
