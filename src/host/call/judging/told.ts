/**
 * A call's end in the words of whoever wrote the tool: what each way to fail means, what its caller should do, how other
 * contracts spell it, which tool undoes it. Pure.
 *
 * Guarantees: a contract's words are added to the host's and never take the place of its code or of what it found; they are
 * cut, and fit to print. Only whether another attempt is worth making may be narrowed by them.
 */
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { OperationError, ToolContract } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { aruntimeWord } from "../../invoke/spellings.ts"
import { lifecycleNotes } from "../admission/operation.ts"

const WORDS = 600

type Compensation = NonNullable<NonNullable<ToolContract["operation"]>["compensation"]>

const fit = ({ tool, note }: Compensation): Compensation => ({
  tool,
  ...(note === undefined ? {} : { note: shown(note, WORDS) }),
})

const rowFor = ({ operation }: ToolContract, end: Failure): OperationError | undefined => {
  const own = end.code.slice(end.code.indexOf(":") + 1)
  const names = new Set<string>([end.code, own, aruntimeWord(end.code, end.details) ?? end.code])
  return operation?.errors.find(
    ({ status, code }) =>
      (status !== undefined && status === end.details["status"]) || (code !== undefined && names.has(code)),
  )
}

/** Whether another attempt is worth making, where the contract says so. */
export const classified = (tool: ToolContract, end: Success | Failure): Success | Failure => {
  if (end.ok || tool.operation === undefined) return end
  const { status } = end.details
  const { retryOnStatus } = tool.operation
  if (retryOnStatus !== undefined && typeof status === "number")
    return { ...end, retryable: retryOnStatus.includes(status) }
  const said = rowFor(tool, end)?.retryable
  return said === undefined ? end : { ...end, retryable: said }
}

/** As the caller is told of it. */
export const told = (tool: ToolContract, end: Success | Failure, at: number): Success | Failure => {
  const { operation } = tool
  if (operation === undefined) return end
  const notes = lifecycleNotes(tool, at)
  if (end.ok) return notes.length === 0 ? end : { ...end, notes: [...notes, ...end.notes] }
  const row = rowFor(tool, end)
  const { compensation, spelling } = operation
  const isHalfWay = end.code === "partial_effect" || end.details["commit"] === "unknown"
  const commit = end.code === "timeout" && end.details["commit"] === undefined ? { commit: "none" } : {}
  const details = {
    ...end.details,
    ...commit,
    ...(notes.length === 0 ? {} : { notes }),
    ...(isHalfWay && compensation !== undefined ? { compensation: fit(compensation) } : {}),
  }
  const word = spelling === "aruntime" ? aruntimeWord(end.code, details) : undefined
  const undo = isHalfWay && compensation !== undefined ? `undo it with ${compensation.tool}` : undefined
  const hint = [row?.action, undo].filter((each) => each !== undefined).join("; ")
  return {
    ...end,
    ...(row?.meaning === undefined ? {} : { message: `${end.message}: ${shown(row.meaning, WORDS)}` }),
    ...(hint === "" ? {} : { hint: shown(hint, WORDS) }),
    details: { ...details, ...(word === undefined ? {} : { spelled: word }) },
  }
}
