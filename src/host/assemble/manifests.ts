/**
 * Folders of manifests → the registry, with what was registered before held against it: what drivers narrowed last
 * time, and how far everything reached the first time.
 *
 * Guarantees: a bad manifest never takes the registry down; folders are in the order of trust (the operator's config, the
 * bundled catalogue, then those named for this run), and a later one never takes over what an earlier one owns.
 */
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { narrowingsFile } from "../../data-folder/paths.ts"
import type { DefinedManifest } from "../../manifest/read/defined.ts"
import type { Annotations } from "../../manifest/formats/annotations.ts"
import { loadFound } from "../../manifest/read/discover.ts"
import type { Ceiling } from "../registry/ceiling.ts"
import { createRegistry } from "../registry/registry.ts"
import type { Narrowings, Registry } from "../registry/types.ts"
import type { Amplified } from "./amplifier.ts"
import { rememberManifests } from "./known-manifests.ts"
import { firstReaches } from "./reaches.ts"

interface ManifestFolder {
  readonly dir: string
  /** the operator vouches for it */
  readonly trusted: boolean
}

const readNarrowings = (data: string): Narrowings => {
  try {
    const parsed: unknown = JSON.parse(readFileSync(narrowingsFile(data), "utf8"))
    return typeof parsed === "object" && parsed !== null ? (parsed as Narrowings) : {}
  } catch {
    return {}
  }
}

const keepNarrowings = (data: string, known: Narrowings, now: Narrowings): void => {
  const text = JSON.stringify({ ...known, ...now })
  if (text === JSON.stringify(known)) return
  const temporary = `${narrowingsFile(data)}.${process.pid}.new`
  writeFileSync(temporary, text, { mode: 0o600 })
  renameSync(temporary, narrowingsFile(data))
}

const none = { manifests: [], problems: [], diagnostics: [] }

export const readRegistry = async (
  data: string,
  dirs: readonly ManifestFolder[],
  defined: readonly DefinedManifest[],
  ceiling: Ceiling = {},
  /** throws where what was found is not to be taken */
  accept: (registry: Registry) => void = () => undefined,
  annotations: Annotations = {},
  amplified: Pick<Amplified, "manifests" | "problems" | "diagnostics"> = none,
): Promise<Registry> => {
  const known = readNarrowings(data)
  const { manifests: operators, problems, diagnostics: said } = amplified
  const load = rememberManifests(data, loadFound)
  const options = {
    dirs,
    defined,
    operators,
    problems,
    said,
    ceiling,
    mode: "compat",
    known,
    load,
    annotations,
  } as const
  const found = createRegistry(options)
  accept(found)
  const first = await firstReaches(data, found.reaches)
  const registry = first === undefined ? found : createRegistry({ ...options, first })
  if (registry !== found) accept(registry)
  keepNarrowings(data, known, registry.narrowings)
  return registry
}
