/**
 * Where members of an archive go: the folder that it is unpacked in, and what may be there. Has no dependencies.
 *
 * Guarantees: a name is a plain relative path; nothing is written through a link, twice, or beside a name that differs in
 * case or in how its letters are composed alone; links stay inside by their words; nobody's rights but the owner's come
 * along. All of it is counted and bounded before it is written.
 */
import { closeSync, copyFileSync, mkdirSync, openSync, statSync, symlinkSync, writeSync } from "node:fs"
import { posix } from "node:path"

/** Why an archive is not unpacked, in words for people. */
export class Refused extends Error {}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/
const LONGEST_NAME = 255
const ANOTHERS_RIGHTS = 0o6000
const quoted = (name) => JSON.stringify(name.length > 120 ? `${name.slice(0, 120)}…` : name)

/** Bytes of a name, which must be UTF-8. */
export const nameOf = (bytes) => {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes)
  } catch {
    throw new Refused(`the name ${quoted(Buffer.from(bytes).toString("latin1"))} is not UTF-8`)
  }
}

export class Tree {
  #limits
  #bytes = 0
  #count = 0
  /** path → what is there */
  #kinds = new Map()
  /** the path without what file systems may not tell apart → the path */
  #folded = new Map()

  constructor(limits) {
    this.#limits = limits
  }
  kindOf(path) {
    return this.#kinds.get(path)
  }
  get files() {
    return [...this.#kinds].filter(([, kind]) => kind === "file").map(([path]) => path)
  }

  /** So many bytes more; declared ones too, before they come. */
  count(bytes) {
    this.#bytes += bytes
    if (this.#bytes > this.#limits.bytes)
      throw new Refused(`it unpacks to more than ${Math.floor(this.#limits.bytes / 2 ** 20)} MiB`)
  }

  /** The member's path; undefined for the folder itself. */
  #pathOf(name) {
    if (CONTROL.test(name)) throw new Refused(`the name ${quoted(name)} holds control characters`)
    if (name.includes("\\")) throw new Refused(`the name ${quoted(name)} holds a backslash`)
    if (name.startsWith("/")) throw new Refused(`the member ${quoted(name)} has an absolute path`)
    const parts = name.split("/").filter((part) => part !== "" && part !== ".")
    if (parts.includes("..")) throw new Refused(`the member ${quoted(name)} leads out of the archive`)
    if (parts.length > this.#limits.depth) throw new Refused(`the member ${quoted(name)} lies too deep`)
    if (parts.some((part) => Buffer.byteLength(part) > LONGEST_NAME))
      throw new Refused(`the name ${quoted(name)} is too long`)
    return parts.length === 0 ? undefined : parts.join("/")
  }

  #claim(path, kind) {
    const before = this.#kinds.get(path)
    if (before === "folder" && kind === "folder") return false
    if (before !== undefined) throw new Refused(`the member ${quoted(path)} is there twice`)
    const folded = path.normalize("NFC").toLowerCase()
    const other = this.#folded.get(folded)
    if (other !== undefined) throw new Refused(`the names ${quoted(other)} and ${quoted(path)} differ in case alone`)
    this.#count += 1
    if (this.#count > this.#limits.files) throw new Refused(`it holds more than ${this.#limits.files} members`)
    this.#kinds.set(path, kind)
    this.#folded.set(folded, path)
    return true
  }

  #parents(path) {
    const parts = path.split("/").slice(0, -1)
    for (let upTo = 1; upTo <= parts.length; upTo += 1) {
      const parent = parts.slice(0, upTo).join("/")
      const kind = this.#kinds.get(parent)
      if (kind !== undefined && kind !== "folder")
        throw new Refused(`the member ${quoted(path)} lies below ${quoted(parent)}, which is a ${kind}`)
      if (kind === undefined && this.#claim(parent, "folder")) mkdirSync(parent, 0o755)
    }
  }

  #member(name, kind, mode = 0) {
    if ((mode & ANOTHERS_RIGHTS) !== 0) throw new Refused(`the member ${quoted(name)} is setuid or setgid`)
    const path = this.#pathOf(name)
    if (path === undefined) {
      if (kind === "folder") return undefined
      throw new Refused(`the name ${quoted(name)} is no name of a ${kind}`)
    }
    this.#parents(path)
    return this.#claim(path, kind) ? path : undefined
  }

  folder(name, mode) {
    const path = this.#member(name, "folder", mode)
    if (path !== undefined) mkdirSync(path, 0o755)
  }

  /** A file, filled by `write` calls and closed by `end`. */
  file(name, mode) {
    const path = this.#member(name, "file", mode)
    const fd = openSync(path, "wx", (mode & 0o100) === 0 ? 0o644 : 0o755)
    return {
      write: (bytes) => {
        for (let done = 0; done < bytes.length; ) done += writeSync(fd, bytes, done)
      },
      end: () => closeSync(fd),
    }
  }

  link(name, target) {
    const path = this.#member(name, "link")
    const led = posix.normalize(posix.join(posix.dirname(path), target))
    if (target === "" || CONTROL.test(target) || target.startsWith("/") || led === ".." || led.startsWith("../"))
      throw new Refused(`the link ${quoted(name)} leads out of the archive, to ${quoted(target)}`)
    symlinkSync(target, path)
  }

  /** A second name of a file that came before: a copy, so that changing one does not change the other. */
  hardLink(name, target) {
    const to = this.#pathOf(target)
    if (to === undefined || this.#kinds.get(to) !== "file")
      throw new Refused(`the hard link ${quoted(name)} leads to ${quoted(target)}, which is no file of the archive`)
    const path = this.#member(name, "file")
    this.count(statSync(to).size)
    copyFileSync(to, path)
  }

  refuse(name, what) {
    throw new Refused(`the member ${quoted(name)} is ${what}`)
  }
}
