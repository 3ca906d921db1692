/**
 * The home that a driver is given, and whether what it keeps there is encrypted.
 *
 * Guarantees: a driver that logs in or is set up there, or declares state of its login (`auth.state.paths`), has a home
 * that lies on no disk in the clear, and so has one that is given a secret as a file there, and one whose home was
 * encrypted before, whatever its manifest says by now. Such a file is there for one run: it is not kept, nor told of. Any
 * other keeps caches, as large as they come, in a folder of the host's.
 */
import { mkdirSync } from "node:fs"
import type { DriverContract } from "../../../manifest/types.ts"
import type { HomeContent, SandboxProfile } from "../../../sandbox/backend.ts"
import { displayName, fromBuffer } from "../../../sandbox/effects/names.ts"
import { placeOf } from "../../drivers/paths.ts"
import type { OpenedHome, SealedHomes } from "../../homes/sealed-homes.ts"
import type { VaultAnswer } from "../../secrets/vault.ts"
import type { SealedSecrets } from "./secrets.ts"

type Home = NonNullable<SandboxProfile["home"]>

const holdsLogin = ({ auth, setup }: DriverContract): boolean =>
  setup.length > 0 ||
  auth?.login !== undefined ||
  auth?.refresh !== undefined ||
  (auth?.state.paths ?? []).some((path) => placeOf(path).where === "home")

/** `keep`: what of it survives a call; nothing: it is not kept at all. `files`: secrets that are put there. */
export const homeFor = (
  homes: Pick<SealedHomes, "has">,
  contract: DriverContract,
  dir: string,
  keep: readonly string[],
  files: SealedSecrets["files"] = {},
): { readonly home?: Home } => {
  const hasFiles = Object.keys(files).length > 0
  if (keep.length === 0 && !hasFiles) return {}
  const inMemory = hasFiles || holdsLogin(contract) || homes.has(dir)
  return { home: { dir, keep, ...(inMemory ? { inMemory: true as const } : {}) } }
}

const parentsOf = (path: string): readonly string[] =>
  path.split("/").flatMap((_name, index, names) => (index === 0 ? [] : [names.slice(0, index).join("/")]))

/** Whatever lay there before gives way: a link that a program left leads no secret elsewhere. */
const withFiles = (content: HomeContent, files: SealedSecrets["files"]): HomeContent => {
  const placed = Object.entries(files).map(([path, { value, mode }]) => ({
    path: displayName(fromBuffer(Buffer.from(path))),
    mode,
    content: Buffer.from(value.reveal()),
  }))
  const folders = new Set(placed.flatMap(({ path }) => parentsOf(path)))
  const inTheWay = new Set([
    ...placed.map(({ path }) => path),
    ...content.flatMap(({ path, kind }) => (folders.has(path) && kind !== "folder" ? [path] : [])),
  ])
  const left = content.filter(({ path }) => ![path, ...parentsOf(path)].some((each) => inTheWay.has(each)))
  const there = new Set(left.map(({ path }) => path))
  return [
    ...left,
    ...[...folders]
      .filter((path) => !there.has(path))
      .toSorted()
      .map((path) => ({ kind: "folder" as const, path, mode: 0o700 })),
    ...placed.map((file) => ({ kind: "file" as const, ...file, mtimeMs: 0 })),
  ]
}

/** The same home with those files in it, for one run. */
const withSecrets = (opened: OpenedHome, files: SealedSecrets["files"]): OpenedHome => {
  const given = new Set(Object.keys(files).map((path) => displayName(fromBuffer(Buffer.from(path)))))
  // A program may have made a folder of it.
  const isGiven = (path: string): boolean => [path, ...parentsOf(path)].some((each) => given.has(each))
  return {
    content: withFiles(opened.content, files),
    isGiven,
    isCurrent: () => opened.isCurrent(),
    keep: (after) =>
      opened.keep(after.ok ? { ok: true, content: after.content.filter(({ path }) => !isGiven(path)) } : after),
  }
}

/** What the job is given of it, and who keeps it afterwards; undefined where the sandbox does, or nobody. */
export const openHome = async (
  homes: SealedHomes,
  { home }: { readonly home?: Home },
  files: SealedSecrets["files"],
): Promise<VaultAnswer<OpenedHome | undefined>> => {
  if (home?.inMemory === true) {
    const opened = await homes.open(home.dir, home.keep)
    return opened.ok && Object.keys(files).length > 0 ? { ok: true, value: withSecrets(opened.value, files) } : opened
  }
  if (home !== undefined) mkdirSync(home.dir, { recursive: true, mode: 0o700 })
  return { ok: true, value: undefined }
}

export const handedOver = (opened: OpenedHome | undefined): { readonly home?: HomeContent } =>
  opened === undefined ? {} : { home: opened.content }
