/** Programs of src/runner that an installation runs inside, and how they say what is wrong. */
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { shown } from "../../../manifest/values/diagnostics.ts"

const INSIDE = "/run/caisson"
export const UNPACKER = join(INSIDE, "unpack.mjs")
export const DEBIAN_RUNNER = join(INSIDE, "debian.mjs")

export const runnerFiles = (names: readonly string[]): Readonly<Record<string, Uint8Array>> =>
  Object.fromEntries(
    names.map((name) => [
      join(INSIDE, name),
      readFileSync(fileURLToPath(new URL(`../../../runner/${name}`, import.meta.url))),
    ]),
  )

/** Their last word is one line that begins so. */
const WORD = /^caisson: (.+)$/m

export const saidBy = (about: string, said: string): { readonly message: string } | undefined => {
  const word = WORD.exec(said)?.[1]
  return word === undefined ? undefined : { message: `${about}: ${shown(word, 300)}` }
}
