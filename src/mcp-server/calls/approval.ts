/**
 * Asking a person about held effects, or about a call before it runs, by way of the client.
 *
 * Guarantees: a call is asked about with the whole of its input, or not at all. Of effects, what is asked about is a held
 * layer, by its id; the answer commits exactly that layer, and counts where the caller may approve. Who cannot be asked,
 * declines to answer, or answers too late leaves the call held: it is decided by its id, elsewhere.
 */
import { type InputRequest, inputRequired } from "@modelcontextprotocol/server"
import type { ApprovalQuestion, ElicitAnswer, Envelope, HeldApprovalDetail } from "../../host/types.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { mcpLimits } from "../limits.ts"
import { changesText, inline } from "./changes.ts"

export const heldIn = (envelope: Envelope): string | undefined => {
  if (envelope.ok || envelope.error.code !== "approval_required") return undefined
  const { approval } = envelope.error.details as { readonly approval?: { readonly id?: unknown } }
  return typeof approval?.id === "string" ? approval.id : undefined
}

export const KEEP = "keep"
export const keepQuestion = (held: HeldApprovalDetail): InputRequest =>
  inputRequired.elicit({
    message: changesText(held),
    requestedSchema: {
      type: "object",
      properties: { keep: { type: "boolean", title: "Keep these changes", default: false } },
      required: ["keep"],
    },
  })

const GO = "go"
/** Of a call that cannot be taken back, before anything of it runs; undefined: there is more to it than can be shown. */
export const goQuestion = (
  { tool, mutates, message }: Pick<ApprovalQuestion, "tool" | "mutates" | "message">,
  input: JsonObject,
): InputRequest | undefined => {
  const about = JSON.stringify(input)
  if (about.length > mcpLimits.questionChars.value / 2) return undefined
  const may = mutates.length === 0 ? "" : ` It may change ${inline(mutates.join(", "))}.`
  return inputRequired.elicit({
    message: `Make this call of \`${inline(tool)}\` with ${inline(about)}?${may} ${inline(message)}`.slice(
      0,
      mcpLimits.questionChars.value,
    ),
    requestedSchema: {
      type: "object",
      properties: { [GO]: { type: "boolean", title: "Make this call", default: false } },
      required: [GO],
    },
  })
}
/** `undefined`: nobody answered. */
export const goIn = ({ action, ...answer }: ElicitAnswer): boolean | undefined => {
  if (action === "decline") return false
  return action === "accept" && "content" in answer ? answer.content[GO] === true : undefined
}

/** `undefined`: nobody answered. */
export const keepIn = (written: unknown): boolean | undefined => {
  const given = written as
    | { readonly action?: unknown; readonly content?: { readonly keep?: unknown } }
    | null
    | undefined
  if (given?.action === "decline") return false
  return given?.action === "accept" ? given.content?.keep === true : undefined
}
