/** `local`: a folder that comes with the driver, frozen as it is now. */
import { createHash } from "node:crypto"
import { realpathSync, statSync } from "node:fs"
import { isAbsolute } from "node:path"
import { notHere } from "../failures.ts"
import { type Entry, entriesOf, factsOf, NotALayer } from "../listing.ts"
import type { InstallAnswer, Known } from "../types.ts"
import { copyLocal } from "./copy-local.ts"

const gone = (message: string): InstallAnswer<never> =>
  notHere(message, "put the package's folder beside the driver's manifest, as `package` says")

export const knownFolder = async (folder: string): Promise<InstallAnswer<Known>> => {
  if (!isAbsolute(folder) || statSync(folder, { throwIfNoEntry: false })?.isDirectory() !== true)
    return gone("the package's folder is not there")
  let entries: readonly Entry[]
  const source = realpathSync(folder)
  try {
    entries = await entriesOf(source)
  } catch (error) {
    if (!(error instanceof NotALayer)) throw error
    return gone(`the package's folder can be no layer: ${error.message}`)
  }
  const key = createHash("sha256")
    .update(JSON.stringify(["local", source, factsOf(entries)]))
    .digest("hex")
  const fill: Known["fill"] = async (target, { signal }) => {
    await copyLocal(source, target, entries, signal)
    return { ok: true, value: [] }
  }
  return { ok: true, value: { key, what: "the driver's own package", fill } }
}
