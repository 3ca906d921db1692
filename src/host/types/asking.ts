/** Who asks, and how who may be refused is answered: what every question to the host has in common. */
import type { Caller } from "../access/caller.ts"
import type { CallError } from "../failure.ts"

/** Who asks. */
export interface ListOptions {
  /** default: this process, whose OS user owns the data folder */
  readonly caller?: Caller
}

/** What the host answers to one who may be refused. */
export type HostAnswer<T> = Promise<
  { readonly ok: true; readonly value: T } | { readonly ok: false; readonly error: CallError }
>
