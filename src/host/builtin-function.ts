/** What a program that embeds the host may hand over to be called in its own process. Types alone. */
import type { JsonObject } from "../manifest/types.ts"
import type { HostedFiles } from "../sandbox/layers/hosted/layer.ts"

export interface BuiltinArgs {
  /** valid against the contract, under the driver's names, with the contract's defaults; a copy */
  readonly input: JsonObject
  readonly context: JsonObject
  /** the workspace, through the call's view; what is written lies in a layer that is judged and committed as any call's */
  readonly files: HostedFiles
  /** aborted when the call is cancelled or its time is over; nobody waits for the answer then */
  readonly signal: AbortSignal
}
/** What it returns is the value of the call, as JSON. It runs unsealed, with all that this process may do. */
export type BuiltinFunction = (args: BuiltinArgs) => unknown
