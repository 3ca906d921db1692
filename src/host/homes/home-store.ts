/**
 * Where kept homes lie encrypted: one file an owner, read under whichever key of the vault it names, written under the
 * one that counts.
 *
 * Guarantees: the file is replaced whole and is on the disk before it has its name, so that a crash at any instant leaves
 * the old one or the new one; what a crash leaves beside it is encrypted too. One that is damaged, or whose key is not to
 * be had, is an answer that says so.
 * Assumes: whoever writes holds the home's lock.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, statSync, writeSync } from "node:fs"
import { basename, dirname } from "node:path"
import type { HomeContent } from "../../sandbox/backend.ts"
import { fileLock } from "../data/file-lock.ts"
import type { Failure } from "../failure.ts"
import { homeLimits } from "../limits.ts"
import type { VaultAnswer } from "../secrets/vault.ts"
import { type HomeFile, type HomeKey, newWord, openHome, readHomeFile, sealHome, wipedFile } from "./home-file.ts"
import type { HomeKeys } from "./home-keys.ts"

export interface FoundHome {
  readonly file: HomeFile | undefined
  readonly content: HomeContent
}

interface HomeStore {
  has(at: string): boolean
  lock(at: string): Promise<Disposable | undefined>
  fileAt(at: string): VaultAnswer<HomeFile | undefined>
  contentOf(at: string, file: HomeFile | undefined): Promise<VaultAnswer<HomeContent>>
  find(at: string): Promise<VaultAnswer<FoundHome>>
  write(at: string, content: HomeContent, generation: string): Promise<VaultAnswer<undefined>>
  /** Under another key, and else as it was; answers which it was under. */
  renew(at: string, file: HomeFile, key: HomeKey): Promise<VaultAnswer<undefined>>
  /** Nothing but a new generation. */
  wipe(at: string): void
}

export const ENDING = ".sealed"
const fileOf = (at: string): string => `${at}${ENDING}`

export const unreadable = (why: string, hint: string, home: "unreadable" | "locked" = "unreadable"): Failure => ({
  ok: false,
  code: "internal",
  message: `what this driver keeps of its login cannot be read: ${why}; nothing was run, and nothing of it was changed`,
  hint,
  details: { home },
})
const LOST = "bring the data folder back from your backup, or end the login with `caisson logout` and log in anew"

export const openHomeStore = (keys: HomeKeys, failpoint: (step: string) => void): HomeStore => {
  const fileAt = (at: string): VaultAnswer<HomeFile | undefined> => {
    const path = fileOf(at)
    const stat = statSync(path, { throwIfNoEntry: false })
    if (stat === undefined) return { ok: true, value: undefined }
    const file = stat.size > homeLimits.fileBytes.value ? undefined : readHomeFile(readFileSync(path))
    return file === undefined ? unreadable(`${path} is damaged`, LOST) : { ok: true, value: file }
  }
  const contentOf = async (at: string, file: HomeFile | undefined): Promise<VaultAnswer<HomeContent>> => {
    if (file?.sealed === undefined) return { ok: true, value: [] }
    const key = await keys.named(file.sealed.key)
    // The vault is there and shut: what is encrypted is not lost.
    if (!key.ok) return unreadable(key.message, key.hint ?? LOST, "locked")
    if (key.value === undefined) return unreadable(`the vault has no key ${file.sealed.key}`, LOST)
    const content = openHome(basename(at), file, key.value)
    return content === undefined ? unreadable(`${fileOf(at)} is damaged`, LOST) : { ok: true, value: content }
  }
  const find = async (at: string): Promise<VaultAnswer<FoundHome>> => {
    // A rotation may take the key away between the two looks: its file is another one by then.
    for (let tries = 3; ; tries -= 1) {
      const file = fileAt(at)
      if (!file.ok) return file
      const content = await contentOf(at, file.value)
      if (content.ok) return { ok: true, value: { file: file.value, content: content.value } }
      const now = fileAt(at)
      if (tries === 0 || !now.ok || now.value?.line === file.value?.line) return content
    }
  }
  /** With the lock: the file is the old one or this, and on disk before it has the name. */
  const replace = (at: string, bytes: string | Buffer): void => {
    const next = `${fileOf(at)}.new`
    failpoint("begin")
    const fd = openSync(next, "w", 0o600)
    try {
      const all = typeof bytes === "string" ? Buffer.from(bytes) : bytes
      for (let done = 0; done < all.length; ) done += writeSync(fd, all, done)
      failpoint("written")
      fsyncSync(fd)
    } finally {
      closeSync(fd)
    }
    failpoint("synced")
    renameSync(next, fileOf(at))
    failpoint("renamed")
    const folder = openSync(dirname(at), "r")
    try {
      fsyncSync(folder)
    } finally {
      closeSync(folder)
    }
    failpoint("kept")
  }
  const write = async (at: string, content: HomeContent, generation: string): Promise<VaultAnswer<undefined>> => {
    const key = await keys.current()
    if (!key.ok) return key
    failpoint("keyed")
    const version = newWord()
    replace(at, sealHome(basename(at), content, key.value, { generation, version }))
    return { ok: true, value: undefined }
  }

  return {
    has: (at) => existsSync(fileOf(at)),
    lock: (at) => fileLock(`${at}.lock`, { waitMs: homeLimits.lockMs.value }),
    fileAt,
    contentOf,
    find,
    write,
    async renew(at, file, key) {
      const content = await contentOf(at, file)
      if (!content.ok) return content
      replace(at, sealHome(basename(at), content.value, key, file))
      return { ok: true, value: undefined }
    },
    wipe: (at) => replace(at, wipedFile()),
  }
}
