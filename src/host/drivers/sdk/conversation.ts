/** The talk that one function of a module is called by, whichever kind asks for it. */
import type { ConversationCommand } from "../kind.ts"
import type { FoundModule } from "../runner/found-module.ts"
import { type RunnerRequest, shimArgv, shimFiles, shimWaits } from "../runner/request.ts"
import { talk } from "../runner/talk.ts"
import { type Asked, outcomeOf, Parts } from "./answer.ts"

export const moduleConversation = (
  { interpreter, bundles }: Pick<FoundModule, "interpreter" | "bundles">,
  request: RunnerRequest,
  asked: Asked,
): ConversationCommand => ({
  run: "conversation",
  argv: shimArgv(interpreter.language, interpreter.inside),
  files: shimFiles(interpreter.language),
  waits: {
    ...shimWaits(interpreter.language, interpreter.inside, request.module),
    imports: Object.keys(bundles),
  },
  converse: async (session) => {
    const parts = new Parts(asked, session.tell)
    return outcomeOf(asked, await talk({ session, request, onEvent: parts.add }), parts)
  },
})
