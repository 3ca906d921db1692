/**
 * Mounts that make a view true, put in place by descriptors.
 *
 * Guarantees: every entry of the layer is opened below the descriptor of the folder it was listed in, never through a
 * symlink, before anything is mounted over it: whoever swaps a folder of the workspace for a link meanwhile gets the
 * view refused, and neither shows the sandbox something else nor has something else covered.
 * Assumes: no process of the call runs yet.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  fstatSync,
  mkdirSync,
  readlinkSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import type { Identity } from "../owner-maps.ts"
import { openat2Below, openat2Beneath } from "../../../linux/files.ts"
import { MS, mount } from "../../../linux/mounts.ts"
import type { ShownEntry, ShownFolder } from "./view-plan.ts"

const O_PATH = 0o10000000
const closed = MS.NOSUID | MS.NODEV | MS.NOEXEC

const at = (fd: number): string => `/proc/self/fd/${fd}`

/** A name in a folder of the layer itself, past what is mounted on it */
const within = <T>(dir: number, name: string, use: (fd: number) => T): T => {
  const fd = openat2Beneath(dir, name, O_PATH)
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}
/** A name in a folder as the sandbox sees it, with what is mounted there. */
const seen = <T>(dir: number, name: string, use: (fd: number) => T): T => {
  const fd = openat2Below(dir, name, O_PATH)
  try {
    return use(fd)
  } finally {
    closeSync(fd)
  }
}

const makeReadOnly = (over: number, name: string): void =>
  seen(over, name, (fd) => mount("none", at(fd), null, MS.BIND | MS.REMOUNT | MS.RDONLY | closed, null))

/** Cover a name of a folder with a blank entry. */
export const cover = (blank: string, over: number, name: string): void => {
  within(over, name, (fd) => mount(blank, at(fd), null, MS.BIND, null))
  makeReadOnly(over, name)
}

export interface Blanks {
  readonly file: string
  readonly folder: string
}

/** `under`: a folder of the layer; `over`: the same folder where the sandbox sees it. */
export class Placing {
  readonly #blanks: () => Blanks
  readonly #identity: Identity | undefined
  constructor(blanks: () => Blanks, identity: Identity | undefined) {
    this.#blanks = blanks
    this.#identity = identity
  }

  fill(folder: ShownFolder, under: number, over: number): void {
    for (const entry of folder.entries) {
      if (folder.how === "kept") this.#keep(entry, under, over)
      else if (entry.is !== "hidden") this.#put(entry, under, over)
    }
  }

  /** Over the folder that `point` holds, `name` of `over`, a new one with what the plan names and nothing else. */
  build(folder: ShownFolder, under: number, point: number, over: number, name: string): void {
    mount("tmpfs", at(point), "tmpfs", closed, "size=4m,nr_inodes=60000,mode=0755")
    seen(over, name, (built) => {
      this.fill(folder, under, built)
      this.#like(under, built)
    })
    makeReadOnly(over, name)
  }

  #keep(entry: ShownEntry, under: number, over: number): void {
    const { name } = entry
    if (entry.is === "hidden") cover(this.#blanks()[entry.folder ? "folder" : "file"], over, name)
    else if (entry.is === "partial") {
      const { content } = entry
      within(under, name, (own) => {
        if (content.how === "built") within(over, name, (point) => this.build(content, own, point, over, name))
        else seen(over, name, (shown) => this.fill(content, own, shown))
      })
    }
  }

  #put(entry: Exclude<ShownEntry, { readonly is: "hidden" }>, under: number, over: number): void {
    const { name } = entry
    const to = `${at(over)}/${name}`
    if (entry.is === "link") {
      symlinkSync(readlinkSync(`${at(under)}/${name}`), to)
      return
    }
    if (entry.is === "file") writeFileSync(to, "")
    else mkdirSync(to)
    within(under, name, (own) => {
      if (entry.is === "partial" && entry.content.how === "built") {
        const { content } = entry
        within(over, name, (made) => {
          this.fill(content, own, made)
          this.#like(own, made)
        })
        return
      }
      mount(at(own), to, null, MS.BIND, null)
      if (entry.is === "partial") seen(over, name, (shown) => this.fill(entry.content, own, shown))
    })
  }

  #like(under: number, over: number): void {
    chmodSync(at(over), fstatSync(under).mode & 0o777)
    if (this.#identity !== undefined) chownSync(at(over), this.#identity.uid, this.#identity.gid)
  }
}
