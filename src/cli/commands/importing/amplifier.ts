/**
 * Modules of Amplifier's for `caisson import` and `caisson validate`: they are mounted, in a sandbox, to be known.
 *
 * Guarantees: what is said is said of the modules that were named; what is written is what a host would register, with the
 * module beside its driver.
 */
import { basename, dirname, join } from "node:path"
import type { Amplified } from "../../../host/assemble/amplifier.ts"
import { lookAtModules } from "../../../host/assemble/look-at-modules.ts"
import { loadFront } from "../../../manifest/read/load.ts"
import type { Diagnostic } from "../../../manifest/types.ts"
import type { Importer } from "./importer.ts"

const problemsOf = ({ manifests, problems, diagnostics }: Amplified): readonly Diagnostic[] => [
  ...problems.flatMap((each) => each.diagnostics),
  ...diagnostics,
  ...manifests.flatMap(({ file, doctype, front }) => loadFront(file, doctype, front, "compat").result.diagnostics),
]

export const examineModules = async (
  paths: readonly string[],
): Promise<{ readonly manifests: number; readonly diagnostics: readonly Diagnostic[] }> => {
  const amplified = await lookAtModules(paths)
  return { manifests: amplified.manifests.length, diagnostics: problemsOf(amplified) }
}

const idOf = (id: unknown): string => (typeof id === "string" ? id : "")

export const amplifierImporter: Importer = async (paths) => {
  const amplified = await lookAtModules(paths)
  const manifests = amplified.manifests.map(({ doctype, front }) => ({ id: idOf(front["id"]), doctype, front }))
  const drivers = amplified.manifests.filter(({ doctype }) => doctype === "driver")
  return {
    manifests,
    diagnostics: problemsOf(amplified),
    copies: drivers.map(({ file, front }) => {
      const name = basename(idOf(front["package"]))
      return { id: idOf(front["id"]), name, from: join(dirname(file), name) }
    }),
  }
}
