/**
 * A call that a person has to be asked about before it runs, and nobody was there to ask: what is remembered of it, and the
 * yeses that people give to it.
 *
 * Guarantees: pure but for the workspace's id. Its digest is over all that decides what would be done: who asks and for
 * whom, contract, action and driver as they are now (its functions' modules and its provider's file included), input,
 * context, workspace, and what it costs; another call has another digest. A yes is for the request that it was given to,
 * and for nothing else. Does not: keep or count anything; the store does.
 */
import { contentOf } from "../../../manifest/read/catalogue.ts"
import { digestOf } from "../../../manifest/values/digest.ts"
import type { JsonObject } from "../../../manifest/types.ts"
import { subjectOf, tenantOf } from "../../access/caller.ts"
import type { Admitted, Cost } from "../steps.ts"
import { workspaceId } from "../../data/workspaces.ts"
import type { RegisteredDriver } from "../../registry/types.ts"
import type { AskedQuestion, GrantRecord, NewQuestion } from "../../store/store.ts"

/** What is kept as the text of the question. */
export interface RequestText {
  readonly about: "call"
  readonly message: string
  readonly approval: "on-mutate" | "always"
  readonly user: string
  readonly driver: string
  readonly tool: { readonly version: string; readonly digest: string }
  readonly mutates: readonly string[]
  readonly input: JsonObject
  readonly context: JsonObject
  /** its real path (`""`: the call is on no folder), and its id */
  readonly workspace: string
  readonly workspaceId: string
  readonly cost?: JsonObject
}

export interface RequestedCall {
  readonly driver: RegisteredDriver
  readonly cost?: Cost
  readonly message: string
  readonly approval: "on-mutate" | "always"
}

export const requestOf = (
  data: string,
  call: Admitted,
  { driver, cost, message, approval }: RequestedCall,
  at: { readonly askedMs: number; readonly expiresMs: number },
): NewQuestion => {
  const { tool, action, input, context, folder, caller, plan, pin, regions, request, empty } = call
  const place = workspaceId(data, folder.identity)
  const text: RequestText = {
    about: "call",
    message,
    approval,
    user: caller.user,
    driver: driver.key,
    tool: { version: tool.version, digest: tool.source.digest },
    mutates: tool.mutates.map((scope) => scope.text),
    input,
    context,
    workspace: request.workspace === undefined && empty !== undefined ? "" : call.workspace,
    workspaceId: place,
    ...(cost === undefined ? {} : { cost: { ...cost } }),
  }
  const asker = subjectOf(caller)
  return {
    tenant: tenantOf(caller),
    id: call.call,
    asker,
    actor: caller.actor,
    tool: `${tool.id}@${tool.major}`,
    digest: digestOf([
      "call",
      asker,
      caller.actor,
      tool.source.digest,
      action?.source.digest ?? null,
      [driver.key, contentOf(driver.contract)],
      input,
      context,
      place,
      [plan, pin ?? null, [...(regions ?? [])]],
      cost === undefined ? null : { ...cost },
    ]),
    text: JSON.stringify(text),
    ...at,
  }
}

/** Undefined: it is a tool's own question, or its words were damaged. */
export const textOf = ({ text }: Pick<AskedQuestion, "text">): RequestText | undefined => {
  try {
    const read = JSON.parse(text) as Partial<RequestText>
    return read.about === "call" && typeof read.user === "string" && typeof read.workspace === "string"
      ? (read as RequestText)
      : undefined
  } catch {
    return undefined
  }
}

interface RequestAnswer {
  readonly decision: "approve" | "deny"
  readonly reason?: string
}
/** A word that is not known is a no. */
export const answerOf = ({ answer = "" }: AskedQuestion): RequestAnswer => {
  try {
    const { decision, reason } = JSON.parse(answer) as Partial<RequestAnswer>
    const told = typeof reason === "string" ? { reason } : {}
    return { decision: decision === "approve" ? "approve" : "deny", ...told }
  } catch {
    return { decision: "deny" }
  }
}

/** Is this a yes to that request, as it stands now? */
export const isYesTo = ({ facts }: GrantRecord, { id, digest }: Pick<AskedQuestion, "id" | "digest">): boolean =>
  facts.request?.id === id && facts.request.digest === digest
