/**
 * The layers of one host's calls that have no sandbox.
 *
 * Guarantees: they lie where those of sandboxes do, marked as a living host's, and what a dead one left is removed by the
 * next; nothing is made before the first write. Their commits are staged and recovered as any of this data folder's.
 */
import { txRootOf } from "../../effects/index.ts"
import type { Unavailable } from "../../terms.ts"
import { layerRefusal } from "../call-layers.ts"
import { openLayerStore } from "../store.ts"
import { HostedLayer, type HostedLayerOptions } from "./layer.ts"

export interface HostedLayers extends AsyncDisposable {
  open(call: Omit<HostedLayerOptions, "place" | "txRoot">): HostedLayer
  /** What to tell of a failure that they explain; undefined for any other. */
  refusalOf(error: unknown): Unavailable | undefined
}

export const createHostedLayers = (data: string): HostedLayers => {
  let store: ReturnType<typeof openLayerStore> | undefined
  const place = () => (store ??= openLayerStore(data, false)).place
  return {
    open: (call) => new HostedLayer({ ...call, place, txRoot: txRootOf(data) }),
    refusalOf: layerRefusal,
    async [Symbol.asyncDispose]() {
      await store?.dispose()
      store = undefined
    },
  }
}
