/**
 * The exchange of files with a function of this process: a folder of the call's own, beside its layer.
 *
 * Guarantees: as for a sandbox (`mounted.ts`), but that nothing keeps such a function from writing to what it should only
 * read: what it writes there goes nowhere. The folder goes with the layer.
 */
import { closeSync } from "node:fs"
import { join } from "node:path"
import { openRoot } from "../../effects/beneath.ts"
import { makeFolder } from "../../exact-modes.ts"
import type { Tree } from "../hosted/tree.ts"
import { stageInputs } from "./stage.ts"
import { type Sink, takeOutputs } from "./take.ts"
import { EXCHANGE, type Exchange, type Exchanged } from "../../exchange.ts"

export interface HostedExchange {
  /** on this machine */
  readonly folder: string
  /** What was left in the folder, written to the layer. Once, before the layer is sealed. */
  takeBack(): Promise<Exchanged>
}

interface HostedExchangeOptions {
  readonly exchange: Exchange
  readonly tree: Tree
  /** an empty folder of the caller's */
  readonly store: string
  /** `broken`: a write broke off half-way, so that nothing of the layer may be used */
  readonly sink: Sink & { readonly broken: boolean }
  /** bytes of all inputs, and of all outputs */
  readonly most: number
}

/** Throws `NotStaged`. */
export const openHostedExchange = async (options: HostedExchangeOptions): Promise<HostedExchange> => {
  const { exchange, tree, store, sink, most } = options
  const folder = join(store, EXCHANGE)
  makeFolder(folder, 0o700)
  const fd = openRoot(folder)
  const staged = await stageInputs({ tree, folder: fd, inputs: exchange.inputs, owner: undefined, most }).finally(() =>
    closeSync(fd),
  )
  return {
    folder,
    async takeBack() {
      const root = openRoot(store)
      try {
        const left = { root, folder: EXCHANGE }
        const outputs = await takeOutputs({ left, outputs: exchange.outputs, staged, sink, most })
        if (sink.broken) throw new Error("an output could not be written to the call's layer")
        return { inputs: staged, outputs }
      } finally {
        closeSync(root)
      }
    },
  }
}
