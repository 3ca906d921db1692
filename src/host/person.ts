/** A person, or a platform for one, as far as a login can reach them; and how far that login is. Types alone. */
import type { Readable } from "node:stream"

/** A page that a person opens. Nothing comes back from them: what became of it the flow hears elsewhere. */
export interface PageToOpen {
  readonly url: string
  /** what they type there */
  readonly code?: string
  /** the same page with the code in its address, for a QR code or a click */
  readonly direct?: string
  /** an address on this machine that leads there, and lets the program's answer page back in; the url alone does not */
  readonly through?: string
  /** `program`: found in what the driver's own program printed, and therefore a stranger's word */
  readonly from: "host" | "program"
}

export interface Question {
  /** the same question has the same id, so that a platform can answer it beforehand */
  readonly id: string
  readonly text: string
  readonly type: "text" | "secret" | "boolean" | "select"
  readonly default?: string
  /** of a select */
  readonly options?: readonly { readonly value: string; readonly label: string }[]
}

/** A person's terminal, lent to one program. */
export interface LentTerminal {
  readonly columns: number
  readonly rows: number
  readonly input: Readable
  /** what the program prints, as it comes: a stranger's bytes */
  show(bytes: Uint8Array): void
  /** From now until this is disposed of, the program has it. */
  take?(): Disposable
  onResize(listener: (columns: number, rows: number) => void): Disposable
}

/** Whoever is there, as far as they can be reached. An absent way means that nobody is there for it. */
export interface Person {
  /** Told at once; never waited for. */
  open?(page: PageToOpen): void
  /** undefined: they gave up */
  answer?(question: Question, signal: AbortSignal): Promise<string | undefined>
  readonly terminal?: LentTerminal
  /** they answer questions also while a program has the terminal */
  readonly answersBeside?: true
}

/** How far it is, for whoever looks on; words of ours, never a value. */
export type LoginProgress =
  | { readonly at: "waiting"; readonly for: "turn" | "person" | "service" }
  | { readonly at: "setup"; readonly step: string; readonly did: "begin" | "done" | "skipped" }
  | { readonly at: "flow"; readonly method: string }
  /** the program waits for a browser on a port inside; `taken`: of this machine it is not free */
  | { readonly at: "callback"; readonly port: number; readonly way: "open" | "taken" }
  | { readonly at: "proof"; readonly by: "cmd" | "http" }
