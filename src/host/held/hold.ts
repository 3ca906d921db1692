/**
 * Step 8, where a person has to say yes and nobody was there to ask: the call is held.
 *
 * Guarantees: either the layer is on disk and remembered, with what the call answered, or nothing of it is kept and the
 * reason is told. In that order, so that what is remembered is always there; what a crash leaves in between is
 * unremembered, and the next host removes it. The call's lock is held until the call's own scope ends, so that nobody
 * decides before its receipt is written.
 */
import { digestOf } from "../../manifest/values/digest.ts"
import { accessPolicyOf } from "../access/policy.ts"
import { tenantOf } from "../access/caller.ts"
import { isRuled } from "../access/decide.ts"
import { machineTrouble } from "../machine-trouble.ts"
import { workspaceId } from "../data/workspaces.ts"
import type { HoldOutcome, Judged } from "../call/steps.ts"
import type { Success } from "../failure.ts"
import { tellDenials } from "../call/judging/denials.ts"
import { now } from "../store/instant.ts"
import { singleHost, type HoldBounds, StoreUnavailable } from "../store/store.ts"
import type { HeldContext } from "./context.ts"
import { expiresOf, type HeldFacts, toJson } from "./facts.ts"
import { lockHeld, makeHeldFolder, removeHeldFolder, writeAnswer } from "./files.ts"
import { tend } from "./tend.ts"

const full: Readonly<Record<keyof HoldBounds, string>> = {
  count: "as many calls are held as `approvals.hold_count` allows",
  bytes: "held calls take as much of the disk as `approvals.hold_mb` allows",
}

const keep = async (context: HeldContext, judged: Judged, answer: Success, folder: string): Promise<HoldOutcome> => {
  const { core, store } = context
  const { call, tool, action, driver, caller, effects, attempt, approval, folder: workspace } = judged
  const { input, profileDigest } = judged
  const { holdMs, holdCount, holdBytes } = core.config.approvals
  const kept = await attempt.exited.hold({ at: folder, bytes: holdBytes })
  if (!kept.ok) return kept
  const written = writeAnswer(folder, {
    value: answer.value,
    notes: answer.notes,
    effects,
    denied: tellDenials(attempt.denied, judged),
    mutates: tool.mutates.map((scope) => scope.text),
  })
  const facts: HeldFacts = {
    tool: { id: tool.id, major: tool.major, version: tool.version, digest: tool.source.digest },
    driver: driver.key,
    ...(caller.tenant === undefined ? {} : { tenant: caller.tenant }),
    user: caller.user,
    actor: caller.actor,
    roles: caller.roles,
    ...(caller.address === undefined ? {} : { address: caller.address }),
    folder: workspace.identity,
    effects: effects.length,
    approval: approval.class,
    ...(action === undefined || action.firesEvents.length === 0 ? {} : { fires: action.firesEvents }),
    ruled: isRuled(accessPolicyOf(core.registry, core.config), { tool, ...(action === undefined ? {} : { action }) }),
    bound: { driver: driver.contract.source.digest, input: digestOf([call, input]), profile: profileDigest },
    layer: kept.layer.digest,
    answer: written.digest,
  }
  const bytes = kept.layer.bytes + written.bytes
  const held = {
    ...singleHost,
    tenant: tenantOf(caller),
    id: call,
    workspace: workspaceId(core.data, workspace.identity),
    at: now(),
    holdMs,
    bytes,
    facts: toJson(facts),
  }
  const bounds = { count: holdCount, bytes: holdBytes }
  let remembered = await (await store()).hold(held, bounds)
  if (!remembered.ok) {
    // What is over, and what dead hosts left, makes room.
    await tend(context, judged.signal)
    remembered = await (await store()).hold(held, bounds)
  }
  if (!remembered.ok) return { ok: false, message: full[remembered.at] }
  return { ok: true, id: call, expires: expiresOf(held), bytes, layer: facts.layer }
}

/** A machine or a store that will not have it is told as the reason; a bug is thrown. */
const why = (error: unknown): string => {
  if (error instanceof StoreUnavailable) return error.message
  const trouble = machineTrouble(error)
  if (trouble === undefined) throw error
  return trouble.message
}

export const hold = async (
  context: HeldContext,
  judged: Judged,
  answer: Success,
  scope: AsyncDisposableStack,
): Promise<HoldOutcome> => {
  const { core } = context
  const { call } = judged
  if (core.config.approvals.holdMs === 0) return { ok: false, message: "`approvals.hold_ms` is 0" }
  let outcome: HoldOutcome = { ok: false, message: "it could not be" }
  let folder: string | undefined
  try {
    const lock = lockHeld(core.data, call)
    if (lock === undefined) throw new Error(`another process works on the call ${call}`)
    scope.use(lock)
    folder = makeHeldFolder(core.data, call)
    outcome = await keep(context, judged, answer, folder)
  } catch (error) {
    outcome = { ok: false, message: why(error) }
  } finally {
    if (!outcome.ok && folder !== undefined) await removeHeldFolder(core.data, call)
  }
  return outcome
}
