/**
 * The vault in a file of the data folder.
 *
 * Guarantees: the file is replaced whole, under a lock that processes share, so that no writer loses another's secret and
 * a crash leaves the old file or the new; mode 0600. A file that is damaged, or under another key, is refused with what to
 * do, and never written over. No answer that is a failure holds a value.
 * Does not: keep who can write the data folder from putting an older file back.
 */
import { readFileSync, statSync } from "node:fs"
import { vaultFile, vaultLockFile } from "../../data-folder/paths.ts"
import { fileLock } from "../data/file-lock.ts"
import { writeWhole } from "../data/write-whole.ts"
import type { Failure } from "../failure.ts"
import { vaultLimits } from "../limits.ts"
import { type Entry, openSealed, readSealed, sealFile } from "./sealed-file.ts"
import { Secret } from "./secret.ts"
import { sameScope, type SecretScope, type Vault, type VaultAnswer, valueFault } from "./vault.ts"
import { firstKey, keyFrom, keyOfVault, nextKey, type VaultKey } from "./vault-key.ts"

interface Opened {
  readonly entries: readonly Entry[]
  /** absent: there is no vault yet */
  readonly key?: VaultKey
}

const failure = (code: "input_invalid" | "internal", message: string, hint: string): Failure => ({
  ok: false,
  code,
  message,
  hint,
  details: {},
})

const damaged = (file: string, why: string): Failure =>
  failure(
    "internal",
    `the vault ${file} ${why}; nothing was read from it or written to it`,
    "bring it back from your backup, or move it away and set the secrets anew",
  )

const open = (data: string, oldKey: string | undefined, tries = 5): VaultAnswer<Opened> => {
  const file = vaultFile(data)
  const stat = statSync(file, { throwIfNoEntry: false })
  if (stat === undefined) return { ok: true, value: { entries: [] } }
  if (stat.uid !== process.getuid?.() || (stat.mode & 0o077) !== 0)
    return damaged(file, "is open to others, or belongs to another user")
  if (stat.size > vaultLimits.fileBytes.value) return damaged(file, "is larger than any vault")
  const sealed = readSealed(readFileSync(file, "utf8"))
  if (sealed === undefined) return damaged(file, "is damaged")
  const found = oldKey === undefined ? keyOfVault(data, sealed.key) : keyFrom(oldKey)
  if (!found.ok) {
    // A rotation between the look at the file and the look at the key: both are of its making now.
    if (tries > 1 && readSealed(readFileSync(file, "utf8"))?.key !== sealed.key) return open(data, oldKey, tries - 1)
    return failure("internal", found.message, found.fix)
  }
  if (found.key.id !== sealed.key)
    return failure(
      "internal",
      `the vault was made under the key ${sealed.key}, and the old key that was named is ${found.key.id}`,
      "name the file with the key that the vault is under",
    )
  const entries = openSealed(sealed, found.key)
  return entries === undefined ? damaged(file, "is damaged") : { ok: true, value: { entries, key: found.key } }
}

const isEntry =
  (slug: string, scope: SecretScope) =>
  (entry: Entry): boolean =>
    entry.slug === slug && sameScope(entry.scope, scope)

export const openFileVault = (data: string, options: { readonly oldKey?: string } = {}): Vault => {
  const file = vaultFile(data)

  /** Read, change and write, with nobody between. */
  const change = async <T>(
    apply: (entries: readonly Entry[]) => VaultAnswer<{ readonly entries: readonly Entry[]; readonly value: T }>,
    keyed: (current: VaultKey | undefined) => ReturnType<typeof nextKey> = (current) =>
      current === undefined ? firstKey(data) : { ok: true, key: current },
  ): Promise<VaultAnswer<T>> => {
    using lock = await fileLock(vaultLockFile(data), { waitMs: vaultLimits.lockMs.value })
    if (lock === undefined)
      return failure("internal", "another process has been writing the vault for too long", "see what it waits for")
    const opened = open(data, options.oldKey)
    if (!opened.ok) return opened
    const applied = apply(opened.value.entries)
    if (!applied.ok) return applied
    const { entries, value } = applied.value
    if (entries === opened.value.entries) return { ok: true, value }
    const found = keyed(opened.value.key)
    if (!found.ok) return failure("internal", found.message, found.fix)
    writeWhole(file, sealFile(entries, found.key), 0o600)
    found.place?.()
    return { ok: true, value }
  }

  return Object.freeze({
    get: (slug: string, scope: SecretScope) => {
      const opened = open(data, options.oldKey)
      if (!opened.ok) return Promise.resolve(opened)
      const entry = opened.value.entries.find(isEntry(slug, scope))
      return Promise.resolve({ ok: true as const, value: entry === undefined ? undefined : new Secret(entry.value) })
    },
    set: (slug: string, scope: SecretScope, value: Secret) =>
      change<undefined>((entries) => {
        const wrong = valueFault(slug, value)
        if (wrong !== undefined) return wrong
        const others = entries.filter((entry) => !isEntry(slug, scope)(entry))
        if (others.length >= vaultLimits.entries.value)
          return failure(
            "input_invalid",
            `the vault holds ${others.length} secrets, which is all it may`,
            "remove some",
          )
        const entry: Entry = { slug, scope: { ...scope }, set: new Date().toISOString(), value: value.reveal() }
        return { ok: true, value: { entries: [...others, entry], value: undefined } }
      }),
    delete: (slug: string, scope: SecretScope) =>
      change((entries) => {
        const left = entries.filter((entry) => !isEntry(slug, scope)(entry))
        const gone = left.length < entries.length
        return { ok: true, value: { entries: gone ? left : entries, value: gone } }
      }),
    list: () => {
      const opened = open(data, options.oldKey)
      if (!opened.ok) return Promise.resolve(opened)
      const names = opened.value.entries.map(({ slug, scope, set }) => ({ slug, scope, set }))
      return Promise.resolve({ ok: true as const, value: names })
    },
    rotate: () =>
      change<undefined>(
        (entries) => ({ ok: true, value: { entries: [...entries], value: undefined } }),
        () => nextKey(data),
      ),
  })
}
