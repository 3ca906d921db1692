/**
 * What the launcher was asked and has not answered yet.
 *
 * Guarantees: every request ends, by its answer or by an error: the launcher broke over it, ended, or said nothing for
 * so long that it hangs. While something is open it is asked for a sign of life, so a long run is not silence, and signs
 * are counted instead of timed, so that neither a busy host nor a suspended machine takes a live launcher for dead.
 */
import { LAUNCHER } from "./launcher/limits.ts"
import type { Answer, Request, RequestMessage } from "./launcher/protocol.ts"

/** The launcher was gone before it could be asked: nothing of the request was done. */
export class LauncherGone extends Error {}
/** The launcher ended, or hangs and was ended, over the request: what became of it is not known. */
export class LauncherEnded extends Error {}

interface Open {
  readonly started: (() => void) | undefined
  readonly resolve: (answer: Answer) => void
  readonly reject: (error: Error) => void
}
interface ConversationOptions {
  /** throws, or calls back with an error, where nothing was sent */
  readonly send: (message: RequestMessage, sent: (error: Error | null) => void) => void
  /** what the launcher ended by, once that is known: its channel is closed a moment before its end is seen */
  readonly howItEnded: () => Promise<string>
  /** called when the first request opens and when none is left */
  readonly whenBusy: (busy: boolean) => void
  /** the launcher hangs; what was asked has been ended */
  readonly whenSilent: () => void
  readonly everyMs?: number
}

export class Conversation {
  readonly #options: ConversationOptions
  readonly #open = new Map<number, Open>()
  #serial = 0
  #missed = 0
  #signs: NodeJS.Timeout | undefined
  constructor(options: ConversationOptions) {
    this.#options = options
  }
  /** `started` is called where the launcher says so, before the answer. */
  ask(request: Request, started?: () => void): Promise<Answer> {
    return new Promise((resolve, reject) => {
      this.#serial += 1
      const id = this.#serial
      if (this.#open.size === 0) this.#begin()
      this.#open.set(id, { started, resolve, reject })
      this.#options.send({ ...request, id }, (error) => {
        if (error === null) return
        // Taken out now: of what was never sent it is known that nothing was done, whatever the launcher's end then says.
        const unsent = this.#take(id)
        if (unsent !== undefined) void this.#options.howItEnded().then((how) => unsent.reject(new LauncherGone(how)))
      })
    })
  }
  /** The launcher said something, whatever it was. */
  heard(): void {
    this.#missed = 0
  }
  started(id: number): void {
    this.#open.get(id)?.started?.()
  }
  answer(id: number, answer: Answer): void {
    this.#take(id)?.resolve(answer)
  }
  fail(id: number, error: Error): void {
    this.#take(id)?.reject(error)
  }
  /** Nothing will be answered any more. */
  end(error: Error): void {
    for (const id of [...this.#open.keys()]) this.fail(id, error)
  }
  #take(id: number): Open | undefined {
    const open = this.#open.get(id)
    if (open === undefined) return undefined
    this.#open.delete(id)
    // Whoever waited for the answer may ask again right away.
    queueMicrotask(() => {
      if (this.#open.size > 0 || this.#signs === undefined) return
      clearInterval(this.#signs)
      this.#signs = undefined
      this.#options.whenBusy(false)
    })
    return open
  }
  #begin(): void {
    this.#missed = 0
    this.#options.whenBusy(true)
    this.#signs ??= setInterval(() => this.#look(), this.#options.everyMs ?? LAUNCHER.signMs).unref()
  }
  #look(): void {
    if (this.#missed >= LAUNCHER.signsMissed) {
      this.end(new LauncherEnded("the sandbox launcher hangs: it gave no sign of life"))
      this.#options.whenSilent()
      return
    }
    this.#missed += 1
    // No request is numbered 0: its answer counts as a sign and for nothing else.
    this.#options.send({ op: "ping", id: 0 }, () => undefined)
  }
}
