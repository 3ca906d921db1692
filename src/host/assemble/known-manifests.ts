/**
 * What the manifests said when they were read last, kept in the data folder, so that a start with the same manifests
 * need not parse, validate and compile them again.
 *
 * Guarantees: an answer is given only for the very bytes, paths, mode and loading code that it was made from, and only
 * if it is whole; anything else is loaded anew. What is kept is checked to come back equal before it is written. The
 * files are as private as the data folder, written whole, and few.
 * Assumes: the data folder is this user's alone; whoever can write there also holds the keys of the evidence.
 * Does not: fail; a cache that cannot be read or written only costs time.
 */
import { createHash, type Hash } from "node:crypto"
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { isDeepStrictEqual } from "node:util"
import { knownManifestsFolder } from "../../data-folder/paths.ts"
import type { FoundManifests } from "../../manifest/read/find.ts"
import { deepFreeze } from "../../manifest/values/freeze.ts"
import type { LoadOptions } from "../../manifest/read/discover.ts"
import type { LoadResult } from "../../manifest/types.ts"
import { hostLimits } from "../limits.ts"

export type LoadManifests = (found: FoundManifests, options: LoadOptions) => readonly LoadResult[]

const here = (path: string): string => fileURLToPath(new URL(path, import.meta.url))

/** Every part with its length, so that no two lists of parts give one digest. */
const add = (hash: Hash, part: string | Uint8Array): void => {
  const bytes = typeof part === "string" ? Buffer.from(part) : part
  hash.update(`${typeof part}${bytes.length}:`).update(bytes)
}

/** Everything of ours that decides what a manifest's bytes become: the loaders, our schemas, the pinned dependencies. */
const loadingCode = (): readonly string[] => {
  const folder = (path: string): readonly string[] =>
    readdirSync(path, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.(?:js|ts|json)$/.test(name) && !name.endsWith(".d.ts"))
      .sort()
      .map((name) => join(path, name))
  return [...folder(here("../../manifest/")), ...folder(here("../../../schemas/")), here("../../../package.json")]
}

const keyOf = (found: FoundManifests, { mode, annotations = {}, vouched = [] }: LoadOptions): string => {
  const hash = createHash("sha256")
  for (const part of [
    process.version,
    mode,
    ...[found.problems, found.roots, found.defined, [...found.entries], annotations, vouched].map((each) =>
      JSON.stringify(each),
    ),
  ])
    add(hash, part)
  for (const file of loadingCode()) {
    add(hash, file)
    add(hash, readFileSync(file))
  }
  for (const [file, read] of found.files) {
    add(hash, file)
    add(hash, read())
  }
  for (const [file, bytes] of found.runners) {
    add(hash, file)
    add(hash, bytes)
  }
  return hash.digest("hex")
}

const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex")

/** First line: the digest of the rest. */
const readKnown = (file: string): readonly LoadResult[] | undefined => {
  try {
    const text = readFileSync(file, "utf8")
    const end = text.indexOf("\n")
    const rest = text.slice(end + 1)
    return text.slice(0, end) === digestOf(rest) ? deepFreeze(JSON.parse(rest) as readonly LoadResult[]) : undefined
  } catch {
    return undefined
  }
}

/** The newest stay. */
const prune = (folder: string): void => {
  const kept = readdirSync(folder)
    .map((name) => ({ name, at: statSync(join(folder, name), { throwIfNoEntry: false })?.mtimeMs ?? 0 }))
    .sort((a, b) => b.at - a.at)
  for (const { name } of kept.slice(hostLimits.knownManifests.value)) rmSync(join(folder, name), { force: true })
}

const keep = (folder: string, key: string, results: readonly LoadResult[]): void => {
  const text = JSON.stringify(results)
  if (text.length > hostLimits.knownManifestBytes.value || !isDeepStrictEqual(JSON.parse(text), results)) return
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const temporary = join(folder, `${key}.${process.pid}.new`)
  writeFileSync(temporary, `${digestOf(text)}\n${text}`, { mode: 0o600 })
  renameSync(temporary, join(folder, key))
  prune(folder)
}

export const rememberManifests =
  (data: string, load: LoadManifests): LoadManifests =>
  (found, options) => {
    if (!found.held) return load(found, options)
    const folder = knownManifestsFolder(data)
    let key: string
    try {
      key = keyOf(found, options)
    } catch {
      return load(found, options)
    }
    const known = readKnown(join(folder, key))
    if (known !== undefined) return known
    const results = load(found, options)
    try {
      keep(folder, key, results)
    } catch {
      // Not remembering costs the next start some time, never a call.
    }
    return results
  }
