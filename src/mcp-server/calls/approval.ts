/**
 * Asking a person about held effects, by way of the client.
 *
 * Guarantees: what is asked about is a held layer, by its id; the answer commits exactly that layer, and counts where the
 * caller may approve. Who cannot be asked, declines to answer, or answers too late leaves the call held: it is decided by
 * its id, elsewhere.
 */
import { type InputRequest, inputRequired } from "@modelcontextprotocol/server"
import type { Envelope, HeldApprovalDetail } from "../../host/types.ts"
import { changesText } from "./changes.ts"

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

/** `undefined`: nobody answered. */
export const keepIn = (written: unknown): boolean | undefined => {
  const given = written as
    | { readonly action?: unknown; readonly content?: { readonly keep?: unknown } }
    | null
    | undefined
  if (given?.action === "decline") return false
  return given?.action === "accept" ? given.content?.keep === true : undefined
}
