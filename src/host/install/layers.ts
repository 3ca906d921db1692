/**
 * Frozen layers on disk: put in place whole, found again, checked before they are used.
 *
 * Guarantees: a layer is there whole or not at all, under the digest of its content. Before it is handed out, every entry
 * is compared with what the kernel said of it when it was checked last; where that differs (a restored backup as much as
 * an edit), all of its content is read and compared with the digest, and what is not the same is refused by name.
 * Assumes: the data folder is this user's alone; who can write both a layer and the list beside it is the host itself.
 */
import {
  chmodSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  utimesSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { installedLayersFolder, installedListsFolder, installedSpecsFolder } from "../../data-folder/paths.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import { writeWhole } from "../data/write-whole.ts"
import { installLimits } from "../limits.ts"
import { freeze } from "./freeze.ts"
import { digestOfListing, entriesOf, factsOf, firstDifference, listingOf } from "./listing.ts"
import type { InstalledPackage } from "./types.ts"

const DIGEST = /^[a-f0-9]{64}$/
const layerAt = (data: string, digest: string): string => join(installedLayersFolder(data), digest)
const listAt = (data: string, digest: string): string => join(installedListsFolder(data), digest)
const factsAt = (data: string, digest: string): string => join(installedListsFolder(data), `${digest}.facts`)

const textOf = (file: string): string | undefined => {
  try {
    return readFileSync(file, "utf8")
  } catch {
    return undefined
  }
}

type Checked =
  | { readonly ok: true; readonly folder: string }
  | { readonly ok: false; readonly there: boolean; readonly reason: string }

/** Is the layer there, as its digest says? */
export const checkLayer = async (data: string, digest: string): Promise<Checked> => {
  const folder = layerAt(data, digest)
  const root = lstatSync(folder, { throwIfNoEntry: false })
  if (root === undefined) return { ok: false, there: false, reason: "it is not there any more" }
  const changed = (reason: string): Checked => ({ ok: false, there: true, reason })
  if (!root.isDirectory() || root.uid !== process.getuid?.()) return changed("its folder is not this user's")
  try {
    const entries = await entriesOf(folder)
    const facts = factsOf(entries)
    if (textOf(factsAt(data, digest)) === facts) return { ok: true, folder }
    const listing = await listingOf(folder, entries)
    if (digestOfListing(listing) !== digest)
      return changed(
        `${shown(firstDifference(textOf(listAt(data, digest)) ?? "", listing))} is not as it was installed`,
      )
    chmodSync(folder, 0o555)
    // What was looked at now must be what is there at the next look.
    writeWhole(factsAt(data, digest), factsOf(await entriesOf(folder)), 0o600)
    return { ok: true, folder }
  } catch (error) {
    return changed(shown((error as Error).message, 200))
  }
}

/** A folder that holds what shut folders hold is removed all the same. */
export const removeTree = (folder: string): void => {
  const open = (path: string): void => {
    const stat = lstatSync(path, { throwIfNoEntry: false })
    if (stat?.isDirectory() !== true) return
    chmodSync(path, 0o700)
  }
  if (process.getuid?.() !== 0) for (const path of foldersIn(folder)) open(path)
  rmSync(folder, { recursive: true, force: true })
}

function* foldersIn(folder: string): Generator<string> {
  const stat = lstatSync(folder, { throwIfNoEntry: false })
  if (stat?.isDirectory() !== true) return
  yield folder
  for (const entry of readdirSync(folder, { withFileTypes: true }))
    if (entry.isDirectory()) yield* foldersIn(join(folder, entry.name))
}

/** What a build left becomes a layer; answers its digest. Throws `NotALayer`. */
export const placeLayer = async (data: string, built: string, signal: AbortSignal): Promise<string> => {
  const folder = realpathSync(built)
  freeze(folder, await entriesOf(folder))
  const listing = await listingOf(folder, await entriesOf(folder), signal)
  const digest = digestOfListing(listing)
  const target = layerAt(data, digest)
  for (const each of [dirname(target), installedListsFolder(data)]) mkdirSync(each, { recursive: true, mode: 0o700 })
  writeWhole(listAt(data, digest), listing, 0o600)
  if ((await checkLayer(data, digest)).ok) {
    removeTree(folder)
    return digest
  }
  signal.throwIfAborted()
  // Something by this name that is not this: nobody may be given it, and out of the way it is nobody's.
  removeTree(target)
  // Only a folder that its owner may write can be moved to another one, unless the owner is root.
  chmodSync(folder, 0o755)
  renameSync(folder, target)
  chmodSync(target, 0o555)
  writeWhole(factsAt(data, digest), factsOf(await entriesOf(target)), 0o600)
  return digest
}

/** What a request led to. */
export interface Remembered {
  readonly digest: string
  readonly packages: readonly InstalledPackage[]
}

const specAt = (data: string, key: string): string => join(installedSpecsFolder(data), `${key}.json`)

export const recall = (data: string, key: string): Remembered | undefined => {
  try {
    const { digest, packages } = JSON.parse(readFileSync(specAt(data, key), "utf8")) as Partial<Remembered>
    if (typeof digest !== "string" || !DIGEST.test(digest) || !Array.isArray(packages)) return undefined
    const named = (packages as readonly Partial<InstalledPackage>[]).flatMap(({ name, version }) =>
      typeof name === "string" && typeof version === "string" ? [{ name, version }] : [],
    )
    return { digest, packages: named.slice(0, installLimits.layerFiles.value) }
  } catch {
    return undefined
  }
}

/** It was used now. Not noting it costs no more than building it again some day. */
export const touch = (data: string, key: string): void => {
  try {
    utimesSync(specAt(data, key), new Date(), new Date())
  } catch {
    // Pruned by another process in between: whoever mounts it finds out.
  }
}

export const remember = (data: string, key: string, what: Remembered): void =>
  writeWhole(specAt(data, key), JSON.stringify(what), 0o600)
