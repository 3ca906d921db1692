/**
 * The keys that homes are encrypted under: secrets of the vault, with its protection and its rotation.
 *
 * Guarantees: a key is made once, at the first home that is written, and never where another could not be read: a missing
 * key is an answer, not a new one. No driver can be given one: its scope is no driver's. The name of the one that counts
 * lies in the data folder, so that folders which share a vault share no key.
 */
import { randomBytes } from "node:crypto"
import { readFileSync } from "node:fs"
import { homeKeyLockFile, homeKeyNameFile } from "../../data-folder/paths.ts"
import { fileLock } from "../data/file-lock.ts"
import { writeWhole } from "../data/write-whole.ts"
import type { Failure } from "../failure.ts"
import { homeLimits } from "../limits.ts"
import { Secret } from "../secrets/secret.ts"
import type { SecretScope, Vault, VaultAnswer } from "../secrets/vault.ts"
import { type HomeKey, newWord } from "./home-file.ts"

/** Scopes of drivers hold an `@`. */
const SCOPE: SecretScope = { driver: "caisson:homes" }
const slugOf = (id: string): string => `caisson/home-key-${id}`
const WORD = /^[0-9a-f]{32}$/

export const busy: Failure = {
  ok: false,
  code: "internal",
  message: "other processes have been writing what this driver keeps for too long",
  hint: "see what they wait for, and try again",
  details: {},
}

export interface HomeKeys {
  /** Undefined: the vault has none of that name. */
  named(id: string): Promise<VaultAnswer<HomeKey | undefined>>
  /** The one to write under; made where there is none. */
  current(): Promise<VaultAnswer<HomeKey>>
  /** Nobody changes the key while this is held. */
  hold(): Promise<Disposable | undefined>
  /** Another key from now on, for homes that `renew` writes anew; of those before it, the ones that it names are removed. */
  replace(renew: (key: HomeKey) => Promise<VaultAnswer<readonly string[]>>): Promise<VaultAnswer<undefined>>
}

export const openHomeKeys = (data: string, vault: Pick<Vault, "get" | "set" | "delete">): HomeKeys => {
  const nameFile = homeKeyNameFile(data)
  const lock = (shared: boolean) => fileLock(homeKeyLockFile(data), { waitMs: homeLimits.lockMs.value, shared })
  const currentName = (): string | undefined => {
    try {
      const name = readFileSync(nameFile, "utf8").trim()
      return WORD.test(name) ? name : undefined
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined
      throw error
    }
  }
  const named = async (id: string): Promise<VaultAnswer<HomeKey | undefined>> => {
    const found = await vault.get(slugOf(id), SCOPE)
    if (!found.ok || found.value === undefined) return found.ok ? { ok: true, value: undefined } : found
    const bytes = Buffer.from(found.value.reveal(), "base64")
    return { ok: true, value: bytes.length === 32 ? { id, bytes } : undefined }
  }
  /** Its name is written after it is in the vault. */
  const make = async (): Promise<VaultAnswer<HomeKey>> => {
    const key = { id: newWord(), bytes: randomBytes(32) }
    const set = await vault.set(slugOf(key.id), SCOPE, new Secret(key.bytes.toString("base64")))
    if (!set.ok) return set
    writeWhole(nameFile, `${key.id}\n`, 0o600)
    return { ok: true, value: key }
  }
  return {
    named,
    hold: () => lock(true),
    async current() {
      const name = currentName()
      const found = name === undefined ? undefined : await named(name)
      if (found !== undefined && !found.ok) return found
      if (found?.value !== undefined) return { ok: true, value: found.value }
      // None yet, or it was removed from the vault: what is written from now on must be readable.
      using creating = await fileLock(`${homeKeyLockFile(data)}.new`, { waitMs: homeLimits.lockMs.value })
      if (creating === undefined) return busy
      const again = currentName()
      const made = again === undefined || again === name ? undefined : await named(again)
      if (made?.ok === true && made.value !== undefined) return { ok: true, value: made.value }
      return await make()
    },
    async replace(renew) {
      using alone = await lock(false)
      if (alone === undefined) return busy
      const before = currentName()
      const made = await make()
      if (!made.ok) return made
      const renewed = await renew(made.value)
      if (!renewed.ok) return renewed
      for (const id of new Set([...renewed.value, ...(before === undefined ? [] : [before])])) {
        const gone = await vault.delete(slugOf(id), SCOPE)
        if (!gone.ok) return gone
      }
      return { ok: true, value: undefined }
    },
  }
}
