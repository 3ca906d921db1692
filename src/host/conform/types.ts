/** What goes in and out of a conformance run. */
import type { JsonObject, JsonSchema, JsonValue } from "../../manifest/types.ts"
import type { Envelope, ListOptions } from "../types.ts"

/** What a call must come to. What is not said is not asked, but that it ends well. */
export interface Expected {
  readonly output?: { readonly value: JsonValue }
  readonly schema?: JsonSchema | boolean
  readonly pattern?: string
  readonly error?: string
  readonly effects?: readonly string[]
}

export interface ConformResult {
  /**
   * `blocked`: it could not be tried, because a person must act first, a program is not there, or the host cannot.
   * `skipped`: it is not tried, for a reason of its own.
   */
  readonly outcome: "passed" | "failed" | "blocked" | "skipped"
  /** what is wrong, a line each; of those that did not pass, why */
  readonly why: readonly string[]
  readonly ms: number
  /** of the call; absent where none was made */
  readonly envelope?: Envelope
  /** `sha256:…` over all that the call changed; absent where none ended well */
  readonly writeSet?: string
  /** the code that blocked it */
  readonly code?: string
}

export interface ConformCase {
  /** `jq@1 · json.query · a name` */
  readonly title: string
  readonly name: string
  /** `id@major` */
  readonly tool: string
  readonly driver: string
  /** the manifest that says it, and where */
  readonly file: string
  readonly line?: number
  readonly input: JsonObject
  readonly expected: Expected
  /** Runs it, sealed, in a workspace of its own, which is gone afterwards. */
  run(options?: { readonly signal?: AbortSignal }): Promise<ConformResult>
}

export interface ConformOptions extends ListOptions {
  /** `id` or `id@major`; several; with neither these nor tools: every driver */
  readonly driver?: string | readonly string[]
  /** the examples of these, with every driver that implements them */
  readonly tool?: string | readonly string[]
  /** run those as well whose contracts say that they change things outside the workspace */
  readonly outside?: boolean
}

export interface ConformPlan {
  readonly cases: readonly ConformCase[]
  /** what was asked for and is not there */
  readonly unknown: readonly { readonly what: "driver" | "tool"; readonly name: string; readonly nearest?: string }[]
  /** drivers that were asked for and have no example at all */
  readonly without: readonly { readonly driver: string; readonly file: string; readonly tools: readonly string[] }[]
}
