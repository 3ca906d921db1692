/**
 * `caisson questions [answer ID]`: what tools ask people, and a person's answer to one.
 *
 * Guarantees: what a contract or a caller wrote is shown on one line without control characters; the answer is checked
 * against the form before anybody gets it. JSON alone on stdout where stdout is no terminal.
 */
import type { CallError } from "../../host/types.ts"
import { exit, exitOfError } from "../exit.ts"
import { withHost } from "../host.ts"
import { givenInput } from "../input.ts"
import { onInterrupt } from "../interrupt.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { says } from "../texts.ts"
import { inline } from "../visible.ts"

interface QuestionFlags {
  readonly manifests?: readonly string[]
  readonly json?: boolean
}

const failed = (error: CallError, terminal: Terminal): number => {
  terminal.say(`caisson: ${error.code}: ${inline(error.message)}`)
  terminal.say(`hint: ${inline(error.hint)}`)
  return exitOfError(error)
}
const hostOf = ({ manifests }: QuestionFlags) => (manifests === undefined ? {} : { manifests })

export const list = (flags: QuestionFlags, terminal: Terminal): Promise<number> =>
  withHost(hostOf(flags), terminal, async (host) => {
    const open = await host.questions.list()
    if (flags.json === true || !terminal.isInteractive) resultJson(terminal, open)
    else if (open.length === 0) terminal.say(says.noQuestions)
    for (const { id, tool, user, message, input, form, expires } of terminal.isInteractive && flags.json !== true
      ? open
      : []) {
      terminal.result(`${terminal.paintResult.bold(id)}  ${inline(tool)}  ${inline(user)}  until ${expires}`)
      terminal.result(`  ${inline(message)}`)
      terminal.result(`  about ${inline(JSON.stringify(input))}`)
      terminal.result(`  form ${inline(JSON.stringify(form))}`)
    }
    return exit.ok
  })

export const answer = async (
  id: string,
  { input, ...flags }: QuestionFlags & { readonly input: string },
  terminal: Terminal,
): Promise<number> => {
  using interrupt = onInterrupt(() => terminal.say(`caisson: ${says.cancelling}`))
  const read = await givenInput(input, interrupt.signal)
  if (!read.ok) {
    terminal.say(`caisson: ${inline(read.message)}`)
    return exit.usage
  }
  return await withHost(hostOf(flags), terminal, async (host) => {
    const taken = await host.questions.answer(id, read.value ?? null)
    return taken.ok ? exit.ok : failed(taken.error, terminal)
  })
}
