/**
 * Pages that a program of a login prints, offered to the person, with the way back to where the program waits.
 *
 * Guarantees: never waited for by the program. Where the person can be asked beside it, they may paste the address that
 * their browser ended at, which is held to what the callback takes; what they paste is a secret, and told to nobody else.
 */
import type { RefusedCallback } from "../callback/page.ts"
import { namedIn } from "../callback/named.ts"
import type { openProgramCallback } from "../callback/program.ts"
import type { LoginDesk } from "../flow.ts"
import { loginLimits } from "../limits.ts"
import type { PageToOpen } from "../../person.ts"

export type RefusedBy = (desk: LoginDesk, why: RefusedCallback) => void
type ProgramCallback = ReturnType<typeof openProgramCallback>

const PASTE = "the address that the browser ended at, if it could not be shown there"

const askForAnswer = async (desk: LoginDesk, callback: ProgramCallback, over: AbortSignal): Promise<void> => {
  const { person } = desk
  const enough = AbortSignal.any([over, desk.signal, callback.answered])
  for (let asked = 0; asked < loginLimits.callbackPastes.value && !enough.aborted; asked++) {
    const text = asked === 0 ? PASTE : `that was no answer to this login; ${PASTE}`
    const given = await person.answer?.({ id: "callback", text, type: "secret" }, enough)
    if (given === undefined || enough.aborted) return
    const pasted = await callback.paste(given)
    if (!pasted.took) continue
    if (pasted.location === undefined) return
    // The program's own page leads on to its provider's: they open that one, and come back with another address.
    person.open?.({ url: pasted.location.href, from: "program" })
    asked = 0
  }
}

export const offerPages = (
  desk: LoginDesk,
  callback: ProgramCallback,
  over: AbortSignal,
): ((page: PageToOpen) => void) => {
  const { person } = desk
  const mayPaste = person.answer !== undefined && (person.terminal === undefined || person.answersBeside === true)
  let asks = false
  const offer = async (page: PageToOpen): Promise<void> => {
    const brought = await callback.bring(page.url)
    if (over.aborted) return
    if (brought.way === "none") return person.open?.(page)
    const { port, way } = brought
    desk.tell({ at: "callback", port, way })
    person.open?.(way === "open" ? { ...page, through: brought.through } : page)
    if (asks || !mayPaste) return
    asks = true
    await askForAnswer(desk, callback, over)
  }
  return (page) => {
    if (namedIn(page.url) === undefined) person.open?.(page)
    else void offer(page).catch(() => undefined)
  }
}
