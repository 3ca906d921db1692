/**
 * A person behind the API: what a login wants of them is kept until it is looked at, what they answer is handed on.
 *
 * Guarantees: bounded, whatever a driver's program prints and whoever answers. An answer is kept no longer than until it is
 * asked for. What a program prints is told as plain text: no sequence in it steers the terminal or the page that shows it.
 */
import { PassThrough } from "node:stream"
import { StringDecoder } from "node:string_decoder"
import { stripVTControlCharacters } from "node:util"
import type { LoginProgress, PageToOpen, Person, Question } from "../host/person.ts"
import { daemonLimits } from "./limits.ts"

// Control characters but for tab and line ends, and what changes the direction of text or is not seen.
const STEERS = /[^\P{C}\t\n\r]/gu

export class RelayedPerson implements Disposable {
  readonly pages: PageToOpen[] = []
  readonly #asked = new Map<
    string,
    { readonly question: Question; readonly give: (answer: string | undefined) => void }
  >()
  readonly #answers = new Map<string, string>()
  readonly #typed = new PassThrough()
  readonly #decoder = new StringDecoder("utf8")
  #printed = ""
  progress: LoginProgress | undefined

  get prompts(): readonly Question[] {
    return [...this.#asked.values()].map(({ question }) => question)
  }
  get terminal(): string {
    return this.#printed
  }

  /** False where there is no room for it. */
  answer(id: string, text: string): boolean {
    const asked = this.#asked.get(id)
    if (asked !== undefined) asked.give(text)
    else if (this.#answers.size >= daemonLimits.loginAnswers.value && !this.#answers.has(id)) return false
    else this.#answers.set(id, text)
    return true
  }
  type(text: string): boolean {
    if (this.#typed.writableLength + this.#typed.readableLength + text.length > daemonLimits.loginTypedBytes.value)
      return false
    this.#typed.write(text)
    return true
  }

  #ask(question: Question, signal: AbortSignal): Promise<string | undefined> {
    const known = this.#answers.get(question.id)
    this.#answers.delete(question.id)
    if (known !== undefined || signal.aborted) return Promise.resolve(known)
    return new Promise((resolve) => {
      const give = (answer: string | undefined): void => {
        signal.removeEventListener("abort", leave)
        this.#asked.delete(question.id)
        resolve(answer)
      }
      const leave = (): void => give(undefined)
      signal.addEventListener("abort", leave, { once: true })
      this.#asked.set(question.id, { question, give })
    })
  }
  #show(bytes: Uint8Array): void {
    const text = stripVTControlCharacters(this.#decoder.write(Buffer.from(bytes))).replace(STEERS, "")
    this.#printed = (this.#printed + text).slice(-daemonLimits.loginTerminalBytes.value)
  }

  /** Nobody is there any more; what was answered and not asked for is gone. */
  [Symbol.dispose](): void {
    for (const { give } of [...this.#asked.values()]) give(undefined)
    this.#answers.clear()
    this.#typed.end()
  }

  readonly person: Person = {
    open: (page) => {
      this.pages.push(page)
      if (this.pages.length > daemonLimits.loginPages.value) this.pages.shift()
    },
    answer: (question, signal) => this.#ask(question, signal),
    answersBeside: true,
    terminal: {
      columns: 80,
      rows: 24,
      input: this.#typed,
      show: (bytes) => this.#show(bytes),
      onResize: () => ({ [Symbol.dispose]: () => undefined }),
    },
  }
}
