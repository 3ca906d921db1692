/**
 * `caisson verify`: recomputes the chain of receipts; exit 3 and the first bad line where it breaks, or where there is none.
 * Reads only.
 */
import { existsSync } from "node:fs"
import { basename, dirname, join, resolve } from "node:path"
import { dataFolderOf } from "../../../host/data/folder.ts"
import type { PublishedKey } from "../../../host/receipts/keys.ts"
import { exit } from "../../exit.ts"
import { resultJson, type Terminal } from "../../terminal.ts"
import { inline } from "../../visible.ts"

export interface VerifyFlags {
  readonly json?: boolean
  readonly key?: string
  readonly head?: string
}

const HASH = /^(?:sha256:)?[0-9a-f]{64}$/i

/** What lies in the folder itself is looked for in one named `audit`, so that nothing is taken for a chain by mistake. */
const isMisnamed = (folder: string): boolean =>
  basename(resolve(folder)) !== "audit" && existsSync(join(folder, "audit-log.jsonl"))

/** The data folder, also where its `audit` folder is named. */
const dataAt = (folder: string | undefined): string => {
  if (folder === undefined) return dataFolderOf(undefined)
  const whole = resolve(folder)
  return basename(whole) === "audit" ? dirname(whole) : whole
}

export const run = async (folder: string | undefined, flags: VerifyFlags, terminal: Terminal): Promise<number> => {
  if (flags.head !== undefined && !HASH.test(flags.head)) {
    terminal.say(
      `caisson: --head takes the hash of a receipt, as in sha256:${"0".repeat(12)}…, not ${inline(flags.head)}`,
    )
    return exit.usage
  }
  if (folder !== undefined && isMisnamed(folder)) {
    terminal.say(`caisson: ${inline(folder)} holds a log itself: call the folder \`audit\`, and give that one`)
    return exit.usage
  }
  const { verifyChain } = await import("../../../host/receipts/verify.ts")
  const { keysFromFile } = await import("../../../host/receipts/keys.ts")
  let keys: readonly PublishedKey[] | undefined
  try {
    keys = flags.key === undefined ? undefined : keysFromFile(flags.key)
  } catch (error) {
    // Never what the parser says: it quotes the file, which may be a key that is not to be shown.
    const why = error instanceof SyntaxError ? "it is neither PEM nor JSON" : (error as Error).message
    terminal.say(`caisson: the key cannot be read: ${inline(why)}`)
    terminal.say("hint: give a public key in PEM, or a copy of `audit/.well-known/governance-keys.json`")
    return exit.usage
  }
  const known = {
    ...(keys === undefined ? {} : { keys }),
    ...(flags.head === undefined ? {} : { head: flags.head }),
  }
  const verdict = await terminal.during(verifyChain(dataAt(folder), known), "recomputing the chain")
  const { paintResult: paint } = terminal
  if (flags.json === true || !terminal.isInteractive) resultJson(terminal, verdict)
  else if (verdict.ok) {
    terminal.result(`${paint.green("ok")}  ${verdict.entries} entries, head ${verdict.head}`)
    for (const note of verdict.notes) terminal.say(inline(note))
  } else terminal.result(`${paint.red("bad")}  line ${verdict.line}: ${verdict.code}: ${inline(verdict.message)}`)
  return verdict.ok ? exit.ok : exit.refused
}
