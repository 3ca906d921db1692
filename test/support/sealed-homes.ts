/** Homes that are kept encrypted, in a data folder of their own. */
import { mkdirSync, mkdtempSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { homesFolder } from "../../src/data-folder/paths.ts"
import { openSealedHomes, type OpenedHome, type SealedHomes } from "../../src/host/homes/sealed-homes.ts"
import { openFileVault } from "../../src/host/secrets/file-vault.ts"
import type { HomeContent } from "../../src/sandbox/backend.ts"

/** `at`: where one of them is kept. Whoever asks removes `data`. */
export const makeSealedHomes = (): { readonly data: string; readonly at: string; readonly homes: SealedHomes } => {
  const data = realpathSync(mkdtempSync(join(tmpdir(), "caisson-sealed-")))
  mkdirSync(homesFolder(data))
  mkdirSync(join(data, "keys"), { mode: 0o700 })
  const homes = openSealedHomes({ data, vault: openFileVault(data), recover: async () => undefined })
  return { data, at: join(homesFolder(data), "0123456789abcdef0123456789abcdef"), homes }
}

export const homeFile = (path: string, text: string, mode = 0o600): HomeContent[number] => ({
  path,
  kind: "file",
  mode,
  mtimeMs: 1_700_000_000_123,
  content: new TextEncoder().encode(text),
})

export const openedIn = async (
  homes: SealedHomes,
  at: string,
  keep: readonly string[] = ["**"],
): Promise<OpenedHome> => {
  const answer = await homes.open(at, keep)
  if (!answer.ok) throw new Error(answer.message)
  return answer.value
}

export const textsOf = ({ content }: OpenedHome): Record<string, string> =>
  Object.fromEntries(
    content.flatMap((entry) => (entry.kind === "file" ? [[entry.path, new TextDecoder().decode(entry.content)]] : [])),
  )
