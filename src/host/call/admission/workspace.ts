/**
 * The workspace of a call: opened once, at admission, and that same folder from then on.
 *
 * Guarantees: it neither holds the data folder or lies in it, nor holds the config, by whatever path or mount either is
 * reached; it lies in one of the operator's `workspaces` where there are any. What it holds of the host's own in use
 * (manifests, config, code) is listed, so that no contract lets a tool write there. Whoever gets the value closes it.
 * A caller that may not use a folder, or cannot, gets the answer for one that is not there; the operator is told why.
 */
import { accessSync, constants } from "node:fs"
import { basename, relative, resolve } from "node:path"
import { displayName, fromBuffer } from "../../../sandbox/effects/names.ts"
import { type OpenFolder, openFolder } from "../../../sandbox/folder.ts"
import { type Caller, isAllowedFolder, isOperator, isWithin } from "../../access/caller.ts"
import { noSuchFolder } from "../../access/decide.ts"
import { isInside, locate, type Location, locatePath, mountsNow, namesBetween } from "../../data/location.ts"
import type { Failure } from "../../failure.ts"
import type { HostCore, InUse } from "../core.ts"
import type { Step } from "../steps.ts"

/** A path of the workspace, in the spelling of effects, that belongs to the host while it runs; `` is all of it. */
export interface KeptPath {
  readonly path: string
  readonly why: string
}

interface AdmittedWorkspace {
  readonly folder: OpenFolder
  readonly kept: readonly KeptPath[]
}

const refuse = (code: Failure["code"], message: string, hint: string): Failure => ({
  ok: false,
  code,
  message,
  details: {},
  hint,
})

const open = (wanted: string): Step<OpenFolder> => {
  let folder: OpenFolder
  try {
    folder = openFolder(wanted)
  } catch (error) {
    const code = String((error as { code?: unknown }).code)
    if (code === "EACCES")
      return refuse("not_found", `the workspace ${wanted} is closed to this user`, "name a folder that you can read")
    if (code === "ENOTDIR") return refuse("not_found", `the workspace ${wanted} is not a folder`, "name a folder")
    return refuse("not_found", `there is no folder ${wanted} to use as the workspace`, "name a folder that exists")
  }
  if (folder.path.includes("\uFFFD")) {
    folder[Symbol.dispose]()
    return refuse("not_found", `the workspace ${wanted} has a path that is not UTF-8`, "rename the folder")
  }
  try {
    accessSync(folder.here, constants.R_OK | constants.X_OK)
    return { ok: true, value: folder }
  } catch {
    folder[Symbol.dispose]()
    return refuse("not_found", `the workspace ${folder.path} is closed to this user`, "name a folder that you can read")
  }
}

const misplaced = (
  core: HostCore,
  { path }: OpenFolder,
  place: Location,
  roots: readonly string[] | undefined,
  mounts: string,
): Failure | undefined => {
  const data = locatePath(core.data, mounts)
  if (isInside(data, place))
    return refuse(
      "policy_violation",
      `the workspace ${path} holds this host's data folder ${core.data}`,
      "use a folder beside it, or set CAISSON_DATA to a folder elsewhere",
    )
  if (isInside(place, data))
    return refuse("policy_violation", `the workspace ${path} lies in this host's data folder`, "use a folder elsewhere")
  if (!isAllowedFolder(path, roots))
    return refuse(
      "unauthorised",
      `the workspace ${path} is in none of the folders that the operator's \`workspaces\` names`,
      "use a workspace in one of them, or ask the operator",
    )
  return undefined
}

interface Located extends InUse {
  readonly its: Location
}
/** What a host uses is read when it starts, and so is where it lies. */
const located = new WeakMap<readonly InUse[], readonly Located[]>()
const locateInUse = (inUse: readonly InUse[]): readonly Located[] => {
  let found = located.get(inUse)
  if (found === undefined) {
    found = inUse.flatMap((used) => {
      try {
        return { ...used, its: locatePath(used.file ? resolve(used.path, "..") : used.path) }
      } catch {
        return [] // not there, so not in use
      }
    })
    located.set(inUse, found)
  }
  return found
}

const keptPath = ({ path, what, file, its }: Located, workspace: OpenFolder, place: Location): KeptPath | undefined => {
  const why = `the host uses it: ${what}`
  if (!file && isInside(place, its)) return { path: "", why }
  if (!isInside(its, place)) return undefined
  const names = namesBetween(its, place) ?? Buffer.from(relative(workspace.path, path)).toString("latin1")
  const bytes = [names, ...(file ? [Buffer.from(basename(path)).toString("latin1")] : [])].filter((part) => part !== "")
  return { path: displayName(fromBuffer(Buffer.from(bytes.join("/"), "latin1"))), why }
}

const openAny = (
  core: HostCore,
  wanted: string,
  roots: readonly string[] | undefined = core.config.workspaces,
): Step<AdmittedWorkspace> => {
  const opened = open(wanted)
  if (!opened.ok) return opened
  const folder = opened.value
  let admitted = false
  try {
    const mounts = mountsNow()
    const place = locate(folder, mounts)
    const failure = misplaced(core, folder, place, roots, mounts)
    if (failure !== undefined) return failure
    const { file } = core.config
    if (file !== undefined && (isWithin(file, folder.path) || isInside(locatePath(resolve(file, ".."), mounts), place)))
      return refuse(
        "policy_violation",
        `the workspace ${folder.path} holds this host's config ${file}`,
        "move the config out of the workspace",
      )
    const kept = locateInUse(core.inUse).flatMap((used) => keptPath(used, folder, place) ?? [])
    admitted = true
    return { ok: true, value: { folder, kept } }
  } finally {
    if (!admitted) folder[Symbol.dispose]()
  }
}

/**
 * Whether a caller may try a name at all is decided without a look at what is there, so that neither the answer nor its
 * time tells of folders that are not the caller's; then the folder that the name led to has to be the caller's as well.
 */
export const openWorkspace = (core: HostCore, caller: Caller, named: string | undefined): Step<AdmittedWorkspace> => {
  const wanted = resolve(named ?? ".")
  const lists = [caller.workspaces, core.config.workspaces] as const
  if (isOperator(caller) && caller.workspaces === "any") return openAny(core, wanted)
  const absent = noSuchFolder(wanted)
  if (!isAllowedFolder(wanted, ...lists)) return absent
  const opened = openAny(core, wanted)
  if (!opened.ok) return { ...absent, evidence: { refused: opened.message } }
  const { folder } = opened.value
  if (isAllowedFolder(folder.path, ...lists)) return opened
  folder[Symbol.dispose]()
  return { ...absent, evidence: { refused: "the name leads to a folder that is not the caller's" } }
}

/** A folder of the host's own making, for a call that names none. */
export const openEmpty = (core: HostCore, folder: string): Step<AdmittedWorkspace> => openAny(core, folder, [folder])
