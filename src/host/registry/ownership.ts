/**
 * Who owns which id, folder by folder in the operator's order of trust.
 *
 * Guarantees: the first folder that claims an id owns it, also where its manifest did not load. A later folder may add
 * other ids, other majors and drivers; it never replaces a tool, driver, action, policy or secret, never changes what
 * an id without a major means, and never makes a conflict out of what an earlier folder declares. What it loses by
 * that is reported. Identical copies count once. Two claims within one folder are left to the catalogue. Pure.
 */
import { contentOf } from "../../manifest/read/catalogue.ts"
import { digestOf } from "../../manifest/values/digest.ts"
import type {
  AuthProvider,
  Diagnostic,
  LoadResult,
  Manifest,
  SecretEntry,
  SecretsInventory,
} from "../../manifest/types.ts"
import { majorOf } from "../../manifest/schema/version.ts"
import type { LoadedManifest } from "./snapshot.ts"

type Named = Exclude<Manifest, SecretsInventory | AuthProvider>

interface Holder {
  readonly folder: string
  readonly file: string
  /** absent: it did not load, and holds every major */
  readonly content?: string
}

interface Ownership {
  readonly results: readonly LoadResult[]
  /** does an id without a major mean manifests of this one's folder? */
  owns(manifest: Named): boolean
}

const nameOf = (manifest: Named): string =>
  manifest.kind === "policy" ? `policy ${manifest.dialect}:${manifest.id}` : `${manifest.kind} ${manifest.id}`

const claimOf = (manifest: Named): string =>
  manifest.kind === "policy" ? nameOf(manifest) : `${nameOf(manifest)}@${majorOf(manifest.version)}`

const refusal = (file: string, path: string, what: string, holder: Holder): Diagnostic => ({
  severity: "error",
  rule: "duplicate-id",
  file,
  path,
  message:
    holder.content === undefined
      ? `${what} belongs to ${holder.file}, in a folder named earlier, which did not load; nothing stands in for it`
      : `${what} is already registered from ${holder.file}, in a folder named earlier, with other content; this one is ignored`,
  fix:
    holder.content === undefined
      ? `mend ${holder.file}, or give this one another id`
      : "give this one another id, or, if you vouch for it, name its folder under `manifests` in caisson.yaml",
})

const ignored = (manifest: Named, holder: Holder): LoadResult => {
  const { file } = manifest.source
  const tools = manifest.kind === "driver" ? manifest.implements.map((entry) => entry.tool) : []
  const diagnostics = [refusal(file, "id", claimOf(manifest), holder)]
  return { ok: false, file, kind: manifest.kind, diagnostics, claims: { id: manifest.id, tools } }
}

/** What a manifest that did not load would have been; CLI.md makes a driver. */
const brokenName = ({ kind, claims }: Extract<LoadResult, { ok: false }>): string | undefined =>
  claims?.id === undefined || kind === "unknown" || kind === "secrets" || kind === "policy" || kind === "auth"
    ? undefined
    : `${kind === "cli" ? "driver" : kind} ${claims.id}`

class Claims {
  readonly #claims = new Map<string, Holder>()
  readonly #names = new Map<string, Holder>()
  readonly #slugs = new Map<string, Holder>()

  /** The folder of the first claim. */
  ownerOf(name: string): string | undefined {
    return this.#names.get(name)?.folder
  }

  broken(name: string, holder: Holder): void {
    if (!this.#names.has(name)) this.#names.set(name, holder)
  }

  /** The claim that stands in the way, `copy` where it says the same. */
  take(manifest: Named, folder: string): Holder | "copy" | undefined {
    const holder: Holder = { folder, file: manifest.source.file, content: contentOf(manifest) }
    const name = nameOf(manifest)
    const owner = this.#names.get(name)
    if (owner !== undefined && owner.content === undefined && owner.folder !== folder) return owner
    if (owner === undefined) this.#names.set(name, holder)
    const claim = claimOf(manifest)
    const first = this.#claims.get(claim)
    if (first === undefined) this.#claims.set(claim, holder)
    if (first === undefined || first.folder === folder) return undefined
    return first.content === holder.content ? "copy" : first
  }

  takeSecret({ slug, ...entry }: SecretEntry, file: string, folder: string): Holder | "copy" | undefined {
    const holder: Holder = { folder, file, content: digestOf(entry) }
    const first = this.#slugs.get(slug)
    if (first === undefined) this.#slugs.set(slug, holder)
    if (first === undefined || first.folder === folder) return undefined
    return first.content === holder.content ? "copy" : first
  }
}

const ownSecrets = (
  inventory: SecretsInventory,
  diagnostics: readonly Diagnostic[],
  folder: string,
  claims: Claims,
): LoadResult => {
  const { file } = inventory.source
  const taken = inventory.secrets.map((entry) => ({ entry, holder: claims.takeSecret(entry, file, folder) }))
  const refused = taken.flatMap(({ entry, holder }, index) =>
    typeof holder === "object" ? [refusal(file, `secrets[${index}].slug`, `the secret ${entry.slug}`, holder)] : [],
  )
  const secrets = taken.flatMap(({ entry, holder }) => (holder === undefined ? [entry] : []))
  return { ok: true, manifest: { ...inventory, secrets }, diagnostics: [...diagnostics, ...refused] }
}

export const settleOwnership = (loaded: readonly LoadedManifest[]): Ownership => {
  const claims = new Claims()
  const folders = new Map<string, string>()
  const results = loaded.flatMap(({ result, folder: given }, index): readonly LoadResult[] => {
    const folder = given ?? `#${index}`
    if (!result.ok) {
      const name = brokenName(result)
      if (name !== undefined) claims.broken(name, { folder, file: result.file })
      return [result]
    }
    const { manifest } = result
    folders.set(manifest.source.file, folder)
    if (manifest.kind === "secrets") return [ownSecrets(manifest, result.diagnostics, folder, claims)]
    // Whoever means it names its file: its id claims nothing.
    if (manifest.kind === "auth") return [result]
    const holder = claims.take(manifest, folder)
    if (holder === "copy") return []
    return [holder === undefined ? result : ignored(manifest, holder)]
  })
  return { results, owns: (manifest) => claims.ownerOf(nameOf(manifest)) === folders.get(manifest.source.file) }
}
