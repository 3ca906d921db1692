/**
 * What was registered before, and whether what is registered now goes beyond it.
 *
 * Guarantees: a version of the same major is held to what the first one registered here could do; which one that was is
 * kept in the data folder, for every process on it alike. Manifests that were all taken before are not looked up again.
 * A store that cannot be used stops the start: what may not be wider cannot be told then.
 */
import { createHash } from "node:crypto"
import { readFileSync, renameSync, writeFileSync } from "node:fs"
import { registeredFile, takenFile } from "../../data-folder/paths.ts"
import { jcs } from "../../manifest/values/digest.ts"
import { hostLimits } from "../limits.ts"
import type { Reach } from "../registry/reach.ts"
import type { RegisteredReach } from "../registry/types.ts"
import { widenings } from "../registry/widening.ts"
import { HostStartError } from "../start-error.ts"
import { StoreUnavailable } from "../store/store.ts"

const fingerprintOf = (all: readonly RegisteredReach[]): string =>
  createHash("sha256")
    .update(jcs(all.map(({ key, vouched, reach }) => [key, vouched, reach.digest, reach.parts])))
    .digest("hex")

/** Sets of manifests that were taken as they are, the newest last. */
const readTaken = (data: string): readonly string[] => {
  try {
    return readFileSync(takenFile(data), "utf8")
      .split("\n")
      .filter((line) => line.length === 64)
  } catch {
    return []
  }
}

const keepTaken = (data: string, taken: readonly string[]): void => {
  const temporary = `${takenFile(data)}.${process.pid}.new`
  try {
    writeFileSync(temporary, taken.slice(-hostLimits.takenSets.value).join("\n"), { mode: 0o600 })
    renameSync(temporary, takenFile(data))
  } catch {
    // Looking them up again costs some time, never a call.
  }
}

/** What was kept of a reach; throws where that is none any more. */
const reachIn = (file: string, text: string): Reach => {
  try {
    const value = JSON.parse(text) as Partial<Record<keyof Reach, unknown>> | null
    if (typeof value?.digest === "string" && typeof value.parts === "object" && value.parts !== null)
      return value as Reach
  } catch {
    // Told below, with what to do.
  }
  const lost = "what was registered before is then taken from what is registered next"
  throw new StoreUnavailable("damaged", `${file} is damaged`, `move ${file} away; ${lost}`)
}

const lookUp = async (data: string, all: readonly RegisteredReach[]): Promise<ReadonlyMap<string, Reach>> => {
  try {
    const { openRegistered } = await import("../store/registered.ts")
    using store = await openRegistered(registeredFile(data))
    const kept = await store.remember(all.map(({ key, vouched, reach }) => ({ key, vouched, reach: jcs(reach) })))
    return new Map(Array.from(kept, ([key, text]) => [key, reachIn(registeredFile(data), text)]))
  } catch (error) {
    if (error instanceof StoreUnavailable) throw new HostStartError("internal", error.message, error.fix)
    throw error
  }
}

/** The first reach of every key; nothing where none of them is wider now. */
export const firstReaches = async (
  data: string,
  all: readonly RegisteredReach[],
): Promise<ReadonlyMap<string, Reach> | undefined> => {
  const fingerprint = fingerprintOf(all)
  const taken = readTaken(data)
  if (taken.includes(fingerprint)) return undefined
  const first = await lookUp(data, all)
  const wider = all.some(({ key, reach }) => {
    const before = first.get(key)
    return before !== undefined && widenings(before, reach).length > 0
  })
  if (wider) return first
  keepTaken(data, [...taken, fingerprint])
  return undefined
}
