/**
 * One call through the daemon, from the request to the envelope.
 *
 * Guarantees: the call is sent once, under a key of its own, and never again, whatever becomes of the connection. An
 * interrupt ends the call in the daemon, and its envelope is still waited for. A daemon that hangs or dies meanwhile ends in an
 * envelope that says so, and whether anything can have been done. Where a person can be asked, effects that are held are
 * shown as they lie on disk, and the answer is about exactly those.
 */
import { randomUUID } from "node:crypto"
import { resolve } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import { type Client, ProblemError, Unreachable } from "../../client/index.ts"
import type { CallRequest as WireRequest } from "../../client/index.ts"
import { callErrorOf } from "../../host/failure.ts"
import type { ApprovalQuestion, CallRequest, ContentChange, Envelope, HeldApprovalDetail } from "../../host/types.ts"
import type { Caisson } from "./caisson.ts"
import { lostEnvelope, refusedEnvelope } from "./refusals.ts"

type Options = Parameters<Caisson["call"]>[1]
interface Who {
  readonly user?: string
}

const POLL_MS = 500

export const wireRequest = (request: CallRequest): WireRequest =>
  // Relative folders are this process's, and mean nothing to the daemon.
  ({ ...request, workspace: resolve(request.workspace ?? ".") }) as WireRequest

/** Listens until the call is over; it is then on record. */
const endOf = async (client: Client, id: string, who: Who): Promise<Envelope> => {
  for (;;) {
    try {
      for await (const _event of client.calls.events(id, who)) continue
    } catch (error) {
      // No place for another listener: then it is looked after now and then.
      if (!(error instanceof ProblemError)) throw error
    }
    const { envelope } = await client.calls.get(id, who)
    if (envelope !== undefined) return envelope as Envelope
    await pause(POLL_MS)
  }
}

const made = async (
  client: Client,
  request: CallRequest,
  { signal, approved = false, wait }: Options,
  who: Who,
): Promise<Envelope> => {
  let id: string | undefined
  const cancel = (): void => {
    if (id !== undefined) client.calls.cancel(id, who).catch(() => undefined)
  }
  signal?.addEventListener("abort", cancel, { once: true })
  try {
    id = await client.calls.begin(wireRequest(request), {
      ...who,
      key: randomUUID(),
      approved,
      ...(wait === undefined ? {} : { wait: Math.ceil(wait / 1000) }),
    })
    if (signal?.aborted === true) cancel()
    return await endOf(client, id, who)
  } catch (error) {
    if (error instanceof ProblemError) return refusedEnvelope(error)
    if (error instanceof Unreachable) return lostEnvelope(error, id)
    throw error
  } finally {
    signal?.removeEventListener("abort", cancel)
  }
}

type Required = Extract<Envelope, { ok: false }>
const heldIn = ({ error }: Required): string | undefined => {
  const { approval } = error.details
  const id = typeof approval === "object" && approval !== null && "id" in approval ? approval["id"] : undefined
  return typeof id === "string" ? id : undefined
}

const questionOf = (
  request: CallRequest,
  { call, driver, error }: Required,
  held: HeldApprovalDetail | undefined,
  signal: AbortSignal,
): ApprovalQuestion => ({
  call,
  tool: request.tool,
  ...(driver === undefined ? {} : { driver }),
  about: held === undefined ? "call" : "effects",
  approval: held?.approval ?? (error.details["approval"] === "always" ? "always" : "on-mutate"),
  message:
    held === undefined ? `${error.message}; what it changes in the workspace is kept with the same yes` : error.message,
  mutates: held?.mutates ?? ((error.details["mutates"] ?? []) as readonly string[]),
  effects: held?.effects ?? [],
  denied: held?.denied ?? [],
  changes: held?.content ?? [],
  signal,
})

/** Who interrupts the question wants nothing of the call, as where the host is in this process. */
const thrownAway = async (client: Client, id: string, who: Who): Promise<Envelope> => {
  const gone = await decided(client, id, "deny", who)
  if (gone.ok || gone.error.code !== "approval_denied") return gone
  const message = "the call was cancelled while a person was asked; nothing was committed"
  return { ...gone, error: callErrorOf({ ok: false, code: "cancelled", message, details: {} }) }
}

/** Ask the person who sits there, and do as they say. */
const answered = async (
  client: Client,
  request: CallRequest,
  envelope: Envelope,
  options: Options,
  who: Who,
): Promise<Envelope> => {
  const { approve, signal = new AbortController().signal } = options
  if (approve === undefined || envelope.ok || envelope.error.code !== "approval_required") return envelope
  if (envelope.error.details["approver"] !== undefined || signal.aborted) return envelope
  const id = heldIn(envelope)
  const held = id === undefined ? undefined : ((await client.approvals.get(id, who)) as unknown as HeldApprovalDetail)
  if (held?.intact === false) return envelope
  const yes = await approve(questionOf(request, envelope, held, signal))
  if (signal.aborted) return id === undefined ? envelope : await thrownAway(client, id, who)
  if (id === undefined) return yes ? await made(client, request, { ...options, approved: true }, who) : envelope
  return await decided(client, id, yes ? "approve" : "deny", who)
}

export const decided = async (
  client: Client,
  id: string,
  decision: "approve" | "deny",
  more: Who & { readonly reason?: string } = {},
): Promise<Envelope> => {
  try {
    return (await client.approvals.decide(id, decision, more)) as Envelope
  } catch (error) {
    if (error instanceof ProblemError) return refusedEnvelope(error)
    if (error instanceof Unreachable) return lostEnvelope(error, error.why === "absent" ? undefined : id)
    throw error
  }
}

export const callThrough = async (
  client: Client,
  request: CallRequest,
  options: Options,
  who: Who,
): Promise<Envelope> => {
  const envelope = await made(client, request, options, who)
  try {
    if (request.plan === true && envelope.ok && options.onChanges !== undefined) {
      const { changes } = await client.ask("callDiff", { params: { id: envelope.call } }, who)
      options.onChanges(changes as readonly ContentChange[])
    }
    return await answered(client, request, envelope, options, who)
  } catch (error) {
    // What was to be shown is not to be had: nobody was asked, and nothing was decided.
    if (error instanceof ProblemError || error instanceof Unreachable) return envelope
    throw error
  }
}
