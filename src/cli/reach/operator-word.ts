/** What of the operator's config bears on reading manifests, for commands that run no host; a broken one is told of. */
import { resolve, sep } from "node:path"
import { loadConfig } from "../../host/config/load.ts"
import { dataFolderOf } from "../../host/data/folder.ts"
import { HostStartError } from "../../host/start-error.ts"
import type { Annotations } from "../../manifest/formats/annotations.ts"
import type { Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"

export interface OperatorWord {
  readonly annotations: Annotations
  /** the operator vouches for what lies there */
  isVouched(path: string): boolean
}

export const operatorWord = (terminal: Terminal): OperatorWord => {
  try {
    const { annotations, manifests } = loadConfig(dataFolderOf(undefined), undefined)
    const isVouched = (path: string): boolean =>
      manifests.some((folder) => resolve(path) === folder || resolve(path).startsWith(folder + sep))
    return { annotations, isVouched }
  } catch (error) {
    if (!(error instanceof HostStartError)) throw error
    terminal.say(`caisson: ${inline(error.message)}; nothing that it says is taken`)
    return { annotations: {}, isVouched: () => false }
  }
}
