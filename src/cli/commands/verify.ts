/** `caisson verify`: recomputes the chain of receipts; exit 3 and the first bad line where it breaks. Reads only. */
import { dataFolderOf } from "../../host/data/folder.ts"
import { exit } from "../exit.ts"
import { resultJson, type Terminal } from "../terminal.ts"
import { inline } from "../visible.ts"

export const run = async (flags: { readonly json?: boolean }, terminal: Terminal): Promise<number> => {
  const { verifyChain } = await import("../../host/receipts/verify.ts")
  const verdict = await terminal.during(verifyChain(dataFolderOf(undefined)), "recomputing the chain")
  const { paintResult: paint } = terminal
  if (flags.json === true || !terminal.isInteractive) resultJson(terminal, verdict)
  else if (verdict.ok) {
    terminal.result(`${paint.green("ok")}  ${verdict.entries} entries, head ${verdict.head}`)
    for (const note of verdict.notes) terminal.say(inline(note))
  } else terminal.result(`${paint.red("bad")}  line ${verdict.line}: ${verdict.code}: ${inline(verdict.message)}`)
  return verdict.ok ? exit.ok : exit.refused
}
