/**
 * `review`: what the server behind a driver says of its tools now, beside what was accepted; and a person's yes to it.
 *
 * Guarantees: only the operator looks and accepts. What is accepted is named by its digest, so that a word that came later
 * than the one that was looked at is not; every acceptance leaves a line in the audit log before it counts.
 */
import type { JsonObject } from "../../manifest/types.ts"
import { type Caller, isOperator } from "../access/caller.ts"
import type { HostCore } from "../call/core.ts"
import { callErrorOf, type Failure } from "../failure.ts"
import type { AuditLog } from "../receipts/log.ts"
import type { Offer } from "../store/store.ts"
import type { ReviewedTool, ReviewReport } from "../types.ts"

/** What the driver's own manifest asks for stands beside the words of its server, under a name that no tool has. */
const ASKS = ""

const ended = (failure: Failure): ReviewReport => ({ ok: false, error: callErrorOf(failure) })

const wordOf = ({ digest, text, atMs }: NonNullable<Offer["waiting"]>): ReviewedTool["accepted"] => ({
  digest,
  at: new Date(atMs).toISOString(),
  ...(text === "" ? {} : { offer: JSON.parse(text) as JsonObject }),
})
const toolOf = ({ name, accepted, waiting }: Offer): ReviewedTool => ({
  name,
  accepted: { ...wordOf(accepted), by: accepted.by },
  ...(waiting === undefined ? {} : { waiting: wordOf(waiting) }),
})

export const reviewDriver = async (
  core: HostCore,
  log: AuditLog,
  ref: string,
  caller: Caller,
  accept?: string,
  asks?: readonly string[],
): Promise<ReviewReport> => {
  const refused = (code: Failure["code"], message: string, hint?: string): ReviewReport =>
    ended({ ok: false, code, message, ...(hint === undefined ? {} : { hint }), details: {} })
  if (!isOperator(caller)) return refused("unauthorised", "only the operator of this host reviews drivers")
  const driver = core.registry.driver(ref)
  if (driver === undefined)
    return refused("not_found", `there is no driver ${ref.slice(0, 120)}`, "`caisson drivers` lists what is registered")
  const { contract, key } = driver
  const asked = asks === undefined ? undefined : await core.reviews.of(contract)(ASKS, { rows: [...asks] })
  /** What waited on another day, where the driver asks again for what was accepted. */
  const isPast = ({ name }: Offer): boolean => name === ASKS && asked?.ok === true
  if (accept !== undefined) {
    const waiting = (await core.reviews.list(contract)).find(
      (offer) => offer.waiting?.digest === accept && !isPast(offer),
    )
    const nothing = (): ReviewReport =>
      refused("not_found", `nothing that waits has this digest`, `\`caisson review ${key}\` shows what waits`)
    if (waiting === undefined) return nothing()
    await log.append({
      actor: { id: caller.actor },
      action: "driver.reviewed",
      subject: { kind: "driver", ref: key },
      metadata: {
        tool_name: waiting.name.toWellFormed().slice(0, 256),
        accepted: accept,
        before: waiting.accepted.digest,
      },
    })
    if ((await core.reviews.accept(contract, accept, caller.actor)) === undefined) return nothing()
  }
  const all = (await core.reviews.list(contract)).map((offer) => {
    const { waiting, ...settled } = offer
    return toolOf(isPast(offer) || waiting === undefined ? settled : offer)
  })
  const own = all.find(({ name }) => name === ASKS)
  return {
    ok: true,
    driver: key,
    tools: all.filter(({ name }) => name !== ASKS),
    ...(own === undefined ? {} : { asks: own }),
  }
}
