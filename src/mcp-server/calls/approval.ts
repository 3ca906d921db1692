/**
 * Asking a person about held effects, by way of the client.
 *
 * Guarantees: what is asked about is a held layer, by its id; the answer commits exactly that layer, and counts where the
 * caller may approve. Who cannot be asked, declines to answer, or answers too late leaves the call held: it is decided by
 * its id, elsewhere.
 */
import { type InputRequest, inputRequired } from "@modelcontextprotocol/server"
import type { Envelope, HeldApprovalDetail } from "../../host/types.ts"
import { mcpLimits } from "../limits.ts"

export const heldIn = (envelope: Envelope): string | undefined => {
  if (envelope.ok || envelope.error.code !== "approval_required") return undefined
  const { approval } = envelope.error.details as { readonly approval?: { readonly id?: unknown } }
  return typeof approval?.id === "string" ? approval.id : undefined
}

const shown = ({ tool, workspace, content, effects }: HeldApprovalDetail): string => {
  const changes = content.map(({ kind, path, diff, note }) =>
    [`${kind} ${path}`, diff, note].filter(Boolean).join("\n"),
  )
  const text = changes.join("\n")
  const cut = text.length <= mcpLimits.changeChars.value ? text : `${text.slice(0, mcpLimits.changeChars.value)}\n…`
  return `${tool} changed ${effects.length} path${effects.length === 1 ? "" : "s"} of ${workspace}. Keep these changes?\n\n${cut}`
}

export const KEEP = "keep"
export const keepQuestion = (held: HeldApprovalDetail): InputRequest =>
  inputRequired.elicit({
    message: shown(held),
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
