/** What a driver is composed of; nothing is fetched for it. */
import type { CodeSource } from "../../../manifest/types.ts"
import { notHere } from "../failures.ts"
import { NotALayer } from "../listing.ts"
import type { InstallAnswer, Known } from "../types.ts"
import { composedFiles, keyOfComposed, writeComposed } from "./compose-code.ts"

export const knownCode = (sources: readonly CodeSource[]): InstallAnswer<Known> => {
  try {
    const files = composedFiles(sources)
    const fill: Known["fill"] = async (target, { signal }) => {
      await writeComposed(target, files, signal)
      return { ok: true, value: [] }
    }
    return { ok: true, value: { key: keyOfComposed(files), what: "the driver's own code", fill } }
  } catch (error) {
    if (!(error instanceof NotALayer)) throw error
    return notHere(
      `what the driver is composed of cannot be put together: ${error.message}`,
      "correct `code.sources`, or put the files there",
    )
  }
}
