/**
 * Held calls as they are told: a list, and one in full with every effect, deletions first.
 *
 * Guarantees: a caller is told of what it may see and of nothing else. What is shown of one is what its layer holds; where
 * that cannot be vouched for any more, it says so instead of showing it.
 */
import type { Caller } from "../access/caller.ts"
import { type HeldCall, singleHost, type Store } from "../store/store.ts"
import type { HeldApproval, HeldApprovalDetail, ReportedEffect } from "../types.ts"
import { maySee } from "./deciders.ts"
import { expiresOf, factsOf, isDamaged, toolName } from "./facts.ts"
import { readAnswer } from "./files.ts"

const summaryOf = (held: HeldCall): HeldApproval => {
  const facts = factsOf(held)
  return {
    id: held.id,
    tool: toolName(facts),
    driver: facts.driver,
    user: facts.user,
    workspace: facts.folder.path,
    approval: facts.approval,
    held: new Date(held.at.wallMs).toISOString(),
    expires: expiresOf(held),
    changes: facts.effects,
    bytes: held.bytes,
    ...(isDamaged(held) ? { damaged: true as const } : {}),
  }
}

const removes = ({ kind }: ReportedEffect): boolean => kind === "delete" || kind === "rmdir"
/** What is lost comes first; within each, by path. */
const deletionsFirst = (effects: readonly ReportedEffect[]): readonly ReportedEffect[] => [
  ...effects.filter(removes),
  ...effects.filter((effect) => !removes(effect)),
]

export const listHeld = async (store: Store, caller: Caller): Promise<readonly HeldApproval[]> =>
  (await store.heldList({ tenant: singleHost.tenant, states: ["held", "deciding"] }))
    .filter((held) => maySee(caller, factsOf(held)))
    .map(summaryOf)

export const showHeld = async (
  store: Store,
  data: string,
  caller: Caller,
  id: string,
): Promise<HeldApprovalDetail | undefined> => {
  const held = await store.held(id)
  if (held === undefined || held.state === "settled" || !maySee(caller, factsOf(held))) return undefined
  const answer = readAnswer(data, id, factsOf(held).answer)
  return {
    ...summaryOf(held),
    intact: answer !== undefined,
    mutates: answer?.mutates ?? [],
    effects: deletionsFirst(answer?.effects ?? []),
    denied: answer?.denied ?? [],
  }
}
