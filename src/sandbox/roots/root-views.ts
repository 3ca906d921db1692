/**
 * The views of the root that are kept mounted, one per set of programs, in the order of their last use.
 *
 * Guarantees: a program that was replaced by an upgrade gets a new view, and so do a driver's folder that another one took
 * the place of, and configuration that was copied; the number is bounded, and one that a
 * waiting sandbox needs is never dropped.
 */
import { mkdirSync, rmdirSync, statSync } from "node:fs"
import { join } from "node:path"
import type { Executables } from "../backend.ts"
import { MNT_DETACH, MS, mount, umount } from "../../linux/mounts.ts"
import { configurationEdition } from "./configuration.ts"
import { KEPT_VIEWS } from "./limits.ts"
import { buildRootView } from "./root-view.ts"

export class RootViews {
  readonly #folder: string
  readonly #views = new Map<string, string>()
  #serial = 0
  constructor(base: string) {
    this.#folder = join(base, "roots")
    mkdirSync(this.#folder, { mode: 0o755 })
  }

  /** The view for these programs; `needed` are views that must stay. */
  get(executables: Executables, needed: ReadonlySet<string>): string {
    const editions = [executables.program, ...Object.values(executables.spawn)].map(
      (path) => statSync(path, { throwIfNoEntry: false })?.ctimeMs,
    )
    const folders = Object.keys(executables.bundles).map((path) => {
      const found = statSync(path, { throwIfNoEntry: false })
      return found === undefined ? undefined : [found.dev, found.ino, found.birthtimeMs]
    })
    const key = JSON.stringify([executables, editions, folders, configurationEdition()])
    const known = this.#views.get(key)
    if (known !== undefined) {
      this.#views.delete(key)
      this.#views.set(key, known)
      return known
    }
    this.#dropOld(needed)
    const view = this.#build(executables)
    this.#views.set(key, view)
    return view
  }

  has(view: string): boolean {
    return [...this.#views.values()].includes(view)
  }

  #build(executables: Executables): string {
    this.#serial += 1
    const view = join(this.#folder, String(this.#serial))
    mkdirSync(view)
    mount("tmpfs", view, "tmpfs", MS.NOSUID | MS.NODEV, "size=16m,mode=0755")
    try {
      buildRootView(view, executables)
    } catch (error) {
      this.#remove(view)
      throw error
    }
    return view
  }

  #dropOld(needed: ReadonlySet<string>): void {
    for (const [key, view] of this.#views) {
      if (this.#views.size < KEPT_VIEWS) return
      if (needed.has(view)) continue
      this.#views.delete(key)
      this.#remove(view)
    }
  }

  #remove(view: string): void {
    umount(view, MNT_DETACH)
    rmdirSync(view)
  }
}
