/**
 * Held calls as they are told: a list, and one in full with every effect, deletions first.
 *
 * Guarantees: a caller is told of what it may see and of nothing else. What is shown of one is what its layer holds; where
 * that cannot be vouched for any more, it says so instead of showing it.
 */
import type { Looked } from "../../sandbox/layers/look.ts"
import { type Caller, tenantOf } from "../access/caller.ts"
import { changesOf, deletionsFirst } from "../diffs/changes.ts"
import type { HeldCall, Store } from "../store/store.ts"
import type { HeldApproval, HeldApprovalDetail } from "../types.ts"
import { maySee } from "./deciders.ts"
import { expiresOf, factsOf, isDamaged, toolName } from "./facts.ts"
import { folderOf, readAnswer } from "./files.ts"

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

export const listHeld = async (store: Store, caller: Caller): Promise<readonly HeldApproval[]> =>
  (await store.heldList({ tenant: tenantOf(caller), states: ["held", "deciding"] }))
    .filter((held) => maySee(caller, held))
    .map(summaryOf)

type Look = (held: { readonly at: string; readonly digest: string }) => Promise<readonly Looked[] | undefined>

export const showHeld = async (
  store: Store,
  data: string,
  caller: Caller,
  id: string,
  look: Look,
): Promise<HeldApprovalDetail | undefined> => {
  const held = await store.held(id)
  if (held === undefined || held.state === "settled" || !maySee(caller, held)) return undefined
  const answer = readAnswer(data, id, factsOf(held).answer)
  const looked = answer === undefined ? undefined : await look({ at: folderOf(data, id), digest: factsOf(held).layer })
  return {
    ...summaryOf(held),
    // A layer whose content nobody can vouch for any more is not what was held.
    intact: answer !== undefined && looked !== undefined,
    mutates: answer?.mutates ?? [],
    effects: deletionsFirst(answer?.effects ?? []),
    denied: answer?.denied ?? [],
    content: looked === undefined ? [] : changesOf(answer?.effects ?? [], looked),
  }
}
