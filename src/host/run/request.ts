/**
 * What `run` is asked for, read: a command, and what it may reach, write, read and start.
 *
 * Guarantees: every glob is canonical, relative to the workspace and within it; every host is a canonical egress entry; a
 * name that cannot be meant is refused with what to write instead. A folder that may be written may also be made. Pure.
 */
import { resolve } from "node:path"
import { shown } from "../../manifest/values/diagnostics.ts"
import { parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import { canonicalGlob } from "../../manifest/values/sandbox-globs.ts"
import { placeOf } from "../drivers/paths.ts"
import type { Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import type { RunRequest } from "../types.ts"
import { unknownKey } from "../unknown-key.ts"

/** A run as it was meant. */
export interface ReadRun {
  /** the program's name or path, and its arguments */
  readonly command: readonly [string, ...string[]]
  readonly allow: readonly string[]
  readonly write: readonly string[]
  readonly read: readonly string[]
  readonly exec: readonly string[]
  readonly secrets: readonly string[]
  readonly timeoutMs: number
}

type Read<T> = { readonly ok: true; readonly value: T } | Failure

const KEYS: Readonly<Record<keyof RunRequest, true>> = {
  command: true,
  workspace: true,
  allow: true,
  write: true,
  read: true,
  exec: true,
  secrets: true,
  plan: true,
  timeoutMs: true,
  observe: true,
}

const refuse = (field: string, message: string, hint: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message,
  hint,
  details: { field },
})

const listOf = (
  request: RunRequest,
  field: "allow" | "write" | "read" | "exec" | "secrets",
): Read<readonly string[]> => {
  const given: unknown = request[field] ?? []
  if (!Array.isArray(given) || given.some((each) => typeof each !== "string"))
    return refuse(field, `\`${field}\` is no list of texts`, "pass a list of texts")
  const list = given as readonly string[]
  const { value: most } = hostLimits.runNames
  if (list.length > most) return refuse(field, `\`${field}\` has more than ${most} entries`, "write wider entries")
  return { ok: true, value: [...new Set(list)] }
}

/** The first refusal, or all values. */
const each = <T>(texts: readonly string[], read: (text: string) => Read<T>): Read<readonly T[]> => {
  const values: T[] = []
  for (const text of texts) {
    const made = read(text)
    if (!made.ok) return made
    values.push(made.value)
  }
  return { ok: true, value: values }
}

const host = (text: string): Read<string> => {
  const parsed = parseEgressEntry(text)
  if (parsed.ok) return { ok: true, value: parsed.entry.text }
  const { message, fix } = parsed
  return refuse(
    "allow",
    `--allow ${shown(text)}: ${message}`,
    fix === undefined ? "write `host`, `host:port`, `*.host` or `tcp://host:port`" : `write \`${fix}\``,
  )
}

/** A path of this machine that lies in the workspace is meant as that. */
const fromWorkspace = (text: string, workspace: string): string => {
  const root = workspace.endsWith("/") ? workspace : `${workspace}/`
  if (text === workspace) return "."
  return text.startsWith(root) && root !== "/" ? text.slice(root.length) : text
}

const globIn =
  (flag: "write" | "read", workspace: string) =>
  (text: string): Read<string> => {
    const made = canonicalGlob(fromWorkspace(text, workspace))
    if (!made.ok)
      return refuse(
        flag,
        `--${flag} ${shown(text)}: ${made.message}`,
        `write a path relative to --workspace, as in \`--${flag} 'notes/**'\``,
      )
    const place = placeOf(made.glob)
    if (place.where === "workspace") return { ok: true, value: place.glob === "/" ? "**" : place.glob }
    return refuse(
      flag,
      `--${flag} ${shown(text)} lies outside the workspace`,
      flag === "write"
        ? "write a path relative to --workspace; /tmp and the home are the command's own, and nothing else can be written"
        : "write a path relative to --workspace; of the rest of this machine, system folders are shown and nothing else",
    )
  }

const isPlain = (segment: string): boolean => !/[*?[\]{}!]/.test(segment)

/** With the folders that a path lies in, as far as they are spelt out: they may have to be made. */
const withFolders = (globs: readonly string[]): readonly string[] => {
  const all = new Set<string>()
  for (const glob of globs) {
    all.add(glob)
    const segments = glob.split("/")
    for (let count = 1; count < segments.length && segments.slice(0, count).every(isPlain); count += 1)
      all.add(segments.slice(0, count).join("/"))
  }
  return [...all]
}

const programName = (text: string): Read<string> =>
  /^[^\s/\0][^/\0]*$/.test(text) && text !== "." && text !== ".."
    ? { ok: true, value: text }
    : refuse(
        "exec",
        `--exec ${shown(text)} is no program's name`,
        "write the name alone, as in `--exec git`; it is looked for in the system's folders",
      )

const slugOf = (text: string): Read<string> =>
  /^[a-z0-9][a-z0-9.-]{0,127}$/.test(text)
    ? { ok: true, value: text }
    : refuse("secrets", `--secret ${shown(text)} is no slug`, "`caisson secrets list` shows those that there are")

const commandOf = ({ command }: RunRequest): Read<ReadRun["command"]> => {
  const words: unknown = command
  if (!Array.isArray(words) || words.some((word) => typeof word !== "string") || words.length === 0)
    return refuse("command", "there is no command to run", "write it after `--`, as in `caisson run -- ls -l`")
  const [first, ...rest] = words as string[]
  if (first === undefined || first === "")
    return refuse("command", "the command's first word is empty", "name a program")
  if (words.some((word) => (word as string).includes("\0")))
    return refuse("command", "the command holds a NUL character, which no program can be given", "remove it")
  return { ok: true, value: [first, ...rest] }
}

export const readRun = (request: RunRequest): Read<ReadRun> => {
  const odd = unknownKey(request, Object.keys(KEYS))
  if (odd !== undefined) return refuse(odd.key, `the request ${odd.message}`, odd.fix)
  const workspace = resolve(typeof request.workspace === "string" ? request.workspace : ".")
  const command = commandOf(request)
  if (!command.ok) return command
  const lists = {} as Record<"allow" | "write" | "read" | "exec" | "secrets", readonly string[]>
  const readers = {
    allow: host,
    write: globIn("write", workspace),
    read: globIn("read", workspace),
    exec: programName,
    secrets: slugOf,
  }
  for (const field of ["allow", "write", "read", "exec", "secrets"] as const) {
    const given = listOf(request, field)
    if (!given.ok) return given
    const made = each(given.value, readers[field])
    if (!made.ok) return made
    lists[field] = made.value
  }
  const { timeoutMs = hostLimits.runMs.value } = request
  if (!Number.isSafeInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > hostLimits.runMs.value)
    return refuse("timeoutMs", `the time is not between 1 and ${hostLimits.runMs.value} ms`, "give less")
  return {
    ok: true,
    value: {
      command: command.value,
      allow: lists.allow,
      write: withFolders(lists.write),
      read: lists.read.length === 0 ? ["**"] : lists.read,
      exec: lists.exec,
      secrets: lists.secrets,
      timeoutMs,
    },
  }
}
