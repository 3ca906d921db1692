/** The functions that serve the tools of a driver of kind builtin, and whose they are. */
import type { BuiltinFunction } from "../builtin-function.ts"
import type { HostFunction } from "./builtin/function.ts"

export type FoundFunction =
  | { readonly whose: "caisson"; readonly id: string; readonly run: HostFunction }
  /** of the program that embeds this host */
  | { readonly whose: "embedder"; readonly id: string; readonly run: BuiltinFunction }
/** by tool */
export type FoundFunctions = ReadonlyMap<string, FoundFunction>
