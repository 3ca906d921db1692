/**
 * Homes of drivers that log in: opened for a call, kept after it, wiped, and encrypted under new keys.
 *
 * Guarantees: on disk there is one encrypted file an owner (`home-store.ts`). One that cannot be read is refused, never
 * taken for an empty one. Two calls that changed different paths both keep theirs; of the same path the later is a
 * conflict. What was opened before a logout is not kept after it. A home that lies there in the clear, from before homes
 * were encrypted, is taken over and removed.
 * Assumes: content that is kept was read when nobody wrote to it any more.
 */
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { homesFolder } from "../../data-folder/paths.ts"
import type { CommitResult, HomeAfter, HomeContent } from "../../sandbox/backend.ts"
import { isWhole, mergeHomes, withKept } from "../../sandbox/layers/home/content.ts"
import { readHome } from "../../sandbox/layers/home/read.ts"
import { globFilter } from "../../sandbox/layers/view/view.ts"
import { fixedPart, wipeHome } from "../data/wipe-home.ts"
import type { Vault, VaultAnswer } from "../secrets/vault.ts"
import { FIRST, type HomeFile, newWord } from "./home-file.ts"
import { busy, openHomeKeys } from "./home-keys.ts"
import { ENDING, type FoundHome, openHomeStore, unreadable } from "./home-store.ts"

export type HomeKept =
  | CommitResult
  /** it was opened before a logout: nothing was written */
  | { readonly ok: false; readonly reason: "logged-out"; readonly message: string }

/** As it was when it was opened, and the way to keep what became of it. */
export interface OpenedHome {
  readonly content: HomeContent
  /** Is it there for this run alone, or in the place of what is? What becomes of that is nobody's to know. */
  isGiven?(path: string): boolean
  /** nobody kept or wiped it since */
  isCurrent(): boolean
  keep(after: HomeAfter): Promise<HomeKept>
}

export interface SealedHomes {
  /** `at`: the owner's place, as `homeFolder` names it; `keep`: the paths that whoever opens it may change for good */
  open(at: string, keep: readonly string[]): Promise<VaultAnswer<OpenedHome>>
  /** What is below these names, or all of it. What was opened before is kept by nobody. */
  wipe(at: string, globs: readonly string[] | "all"): Promise<VaultAnswer<undefined>>
  /** Is there one, whoever wrote it? */
  has(at: string): boolean
  /** Another key for all that is there. */
  rotate(): Promise<VaultAnswer<undefined>>
}

interface SealedHomesOptions {
  readonly data: string
  readonly vault: Pick<Vault, "get" | "set" | "delete">
  /** finishes or undoes what a crash left half-way in a home in the clear */
  readonly recover: (folder: string) => Promise<void>
  /** called at every step that a crash could follow; tests end the process there */
  readonly failpoint?: (step: string) => void
}

const notKept = (message: string): HomeKept => ({ ok: false, reason: "failed", message })
const loggedOut: HomeKept = {
  ok: false,
  reason: "logged-out",
  message: "the login that it began with was ended meanwhile, and what it would keep of it was thrown away",
}
const done = { ok: true, value: undefined } as const

/** What was never wiped has the first one, whether it was written or not. */
const generationOf = (file: HomeFile | undefined): string => file?.generation ?? FIRST

/** Is it at one of these names, below one, or a link in the way to one? */
const isBelow = (path: string, kind: string, parts: readonly (readonly string[])[]): boolean => {
  const names = path.split("/")
  return parts.some((part) => {
    const shared = Math.min(names.length, part.length)
    const fits = names.slice(0, shared).every((name, index) => name === part[index])
    return fits && (names.length >= part.length || kind !== "folder")
  })
}

export const openSealedHomes = ({
  data,
  vault,
  recover,
  failpoint = () => undefined,
}: SealedHomesOptions): SealedHomes => {
  const keys = openHomeKeys(data, vault)
  const store = openHomeStore(keys, failpoint)

  /** With the owner's lock, while no key is replaced. */
  const alone = async <T>(at: string, act: () => Promise<T>): Promise<T | undefined> => {
    using held = await keys.hold()
    if (held === undefined) return undefined
    using own = await store.lock(at)
    return own === undefined ? undefined : await act()
  }
  const keep = async (at: string, base: FoundHome, after: HomeContent): Promise<HomeKept> => {
    const now = store.fileAt(at)
    if (!now.ok) return notKept(now.message)
    const generation = generationOf(now.value)
    if (generation !== generationOf(base.file)) return loggedOut
    let content = after
    if (now.value?.version !== base.file?.version) {
      const theirs = await store.contentOf(at, now.value)
      if (!theirs.ok) return notKept(theirs.message)
      const merged = mergeHomes(base.content, after, theirs.value)
      if (!merged.ok) return { ok: false, reason: "conflict", paths: merged.paths }
      content = merged.content
    }
    // It could be opened by nobody again.
    if (!isWhole(content)) return notKept("what it would keep lies in folders that are not there")
    const written = await store.write(at, content, generation)
    return written.ok ? { ok: true } : notKept(written.message)
  }
  /** What lies there in the clear becomes the encrypted file; where that is there already, it is what counts. */
  const takeOver = async (at: string): Promise<VaultAnswer<undefined>> => {
    if (!existsSync(at)) return done
    if (!store.has(at)) {
      await recover(at)
      const read = await readHome(at, () => true)
      if (!read.ok)
        return unreadable(`${at} cannot be encrypted: ${read.message}`, `remove what it does not need from ${at}`)
      const written = read.content.length === 0 ? done : await store.write(at, read.content, FIRST)
      if (!written.ok) return written
    }
    await wipeHome(at, "all")
    return done
  }
  const wipe = async (at: string, globs: readonly string[] | "all"): Promise<VaultAnswer<undefined>> => {
    const parts = globs === "all" ? [[]] : globs.map(fixedPart)
    let left: HomeContent = []
    if (!parts.some((names) => names.length === 0)) {
      const taken = await takeOver(at)
      if (!taken.ok) return taken
      const file = store.fileAt(at)
      const content = file.ok ? await store.contentOf(at, file.value) : file
      if (!content.ok && content.details["home"] === "locked") return content
      // What nobody can read any more is of no use to its owner either.
      left = content.ok ? content.value.filter(({ path, kind }) => !isBelow(path, kind, parts)) : []
    }
    if (left.length > 0) return store.write(at, left, newWord())
    store.wipe(at)
    await wipeHome(at, "all")
    return done
  }

  return Object.freeze({
    has: store.has,
    async open(at: string, patterns: readonly string[]) {
      if (existsSync(at)) {
        const taken = (await alone(at, () => takeOver(at))) ?? busy
        if (!taken.ok) return taken
      }
      const found = await store.find(at)
      if (!found.ok) return found
      const { value: base } = found
      const keeps = globFilter(patterns)
      return {
        ok: true as const,
        value: {
          content: base.content,
          isCurrent() {
            const now = store.fileAt(at)
            return now.ok && now.value?.line === base.file?.line
          },
          async keep(after: HomeAfter) {
            if (!after.ok) return notKept(after.message)
            const content = withKept(base.content, after.content, keeps)
            return (await alone(at, () => keep(at, base, content))) ?? notKept(busy.message)
          },
        },
      }
    },
    wipe: async (at: string, globs: readonly string[] | "all") => (await alone(at, () => wipe(at, globs))) ?? busy,
    rotate: () =>
      keys.replace(async (key) => {
        const homes = existsSync(homesFolder(data)) ? readdirSync(homesFolder(data)) : []
        const before = new Set<string>()
        for (const name of homes.filter((each) => each.endsWith(ENDING))) {
          const at = join(homesFolder(data), name.slice(0, -ENDING.length))
          using own = await store.lock(at)
          if (own === undefined) return busy
          const file = store.fileAt(at)
          if (!file.ok) return file
          const { value } = file
          if (value?.sealed === undefined || value.sealed.key === key.id) continue
          const renewed = await store.renew(at, value, key)
          if (!renewed.ok) return renewed
          before.add(value.sealed.key)
        }
        return { ok: true, value: [...before] }
      }),
  })
}
