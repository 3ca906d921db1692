/**
 * Asking a person about held effects, by way of the client: MCP's elicitation, in both its eras.
 *
 * Guarantees: what is asked about is a held layer, by its id, in a state that only this process can have sealed and that is
 * bound to who was asked; the answer commits exactly that layer, and counts where the caller may approve. Who cannot be
 * asked, declines to answer, or answers too late leaves the call held: it is decided by its id, elsewhere.
 */
import { randomBytes } from "node:crypto"
import {
  CLIENT_CAPABILITIES_META_KEY,
  createRequestStateCodec,
  inputRequired,
  type InputRequiredResult,
  type Server,
  type ServerContext,
} from "@modelcontextprotocol/server"
import type { Envelope, HeldApprovalDetail } from "../host/types.ts"
import { mcpLimits } from "./limits.ts"

export interface HeldState {
  readonly held: string
  /** who was asked */
  readonly actor: string
}

/** One for each process: nobody else's states are taken. */
export const createStates = () =>
  createRequestStateCodec<HeldState>({ key: randomBytes(32), ttlSeconds: mcpLimits.askSeconds.value })
export type States = ReturnType<typeof createStates>

interface Capabilities {
  readonly elicitation?: { readonly form?: unknown; readonly url?: unknown }
}

/** Can this client put a form before a person? */
export const canAsk = (server: Server, { mcpReq }: ServerContext): boolean => {
  const envelope = mcpReq.envelope as Readonly<Record<string, unknown>> | undefined
  const told = (envelope?.[CLIENT_CAPABILITIES_META_KEY] ?? server.getClientCapabilities()) as Capabilities | undefined
  const { elicitation } = told ?? {}
  if (elicitation === undefined) return false
  return elicitation.form !== undefined || elicitation.url === undefined
}

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

const ANSWER = "keep"

export const question = async (
  states: States,
  held: HeldApprovalDetail,
  actor: string,
  ctx: ServerContext,
): Promise<InputRequiredResult> =>
  inputRequired({
    inputRequests: {
      [ANSWER]: inputRequired.elicit({
        message: shown(held),
        requestedSchema: {
          type: "object",
          properties: { keep: { type: "boolean", title: "Keep these changes", default: false } },
          required: ["keep"],
        },
      }),
    },
    requestState: await states.mint({ held: held.id, actor }, ctx),
  })

/** `undefined`: nobody answered. */
export const answerIn = ({ mcpReq }: ServerContext): boolean | undefined => {
  const given = mcpReq.inputResponses?.[ANSWER] as
    | { readonly action?: unknown; readonly content?: { readonly keep?: unknown } }
    | undefined
  if (given?.action === "decline") return false
  return given?.action === "accept" ? given.content?.keep === true : undefined
}
