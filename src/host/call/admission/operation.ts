/**
 * How a tool is run beyond what AIP-14 says (`metadata.operation`), before anything of it runs: is it still in use, how many
 * at once, how often.
 *
 * Guarantees: whether it is in use is told by this host's clock alone; nothing of a call bears on it. A place is given back
 * when the call ends, however it ends. A rate is shared by all hosts on the data folder; one that cannot be counted is
 * used up. Does not: count places across processes.
 */
import type { Operation, ToolContract } from "../../../manifest/types.ts"
import type { Failure } from "../../failure.ts"
import { now } from "../../store/instant.ts"
import { singleHost, StoreUnavailable } from "../../store/store.ts"
import type { HostCore } from "../core.ts"

const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10)
const instead = ({ deprecation }: Operation): string =>
  deprecation?.replacement === undefined ? "" : `; use ${deprecation.replacement} instead`

/** Why it is not called any more. */
export const outOfUse = ({ id, operation }: ToolContract, at: number): Failure | undefined => {
  if (operation === undefined) return undefined
  const { status, deprecation } = operation
  const removed = deprecation?.removed
  const isRemoved = removed !== undefined && at >= removed
  if (status !== "disabled" && !isRemoved) return undefined
  return {
    ok: false,
    code: "tool_unavailable",
    message: isRemoved ? `${id} was removed on ${day(removed)}${instead(operation)}` : `${id} is disabled by its owner`,
    hint:
      deprecation?.replacement === undefined ? "ask its owner what took its place" : `call ${deprecation.replacement}`,
    details: {
      reason: isRemoved ? "removed" : "disabled",
      ...(deprecation?.replacement === undefined ? {} : { replacement: deprecation.replacement }),
    },
  }
}

/** What whoever still calls it is told. */
export const lifecycleNotes = ({ id, operation }: ToolContract, at: number): readonly string[] => {
  if (operation === undefined) return []
  const { status, deprecation } = operation
  const since = deprecation?.deprecated
  const isDeprecated = status === "deprecated" || (since !== undefined && at >= since)
  const until = deprecation?.removed === undefined ? "" : `, and is removed on ${day(deprecation.removed)}`
  return [
    ...(isDeprecated
      ? [`${id} is deprecated${since === undefined ? "" : ` since ${day(since)}`}${until}${instead(operation)}`]
      : []),
    ...(status === "draft" ? [`${id} is a draft that nobody has approved`] : []),
  ]
}

const places = new Map<string, number>()

const takePlace = (key: string, most: number): Disposable | undefined => {
  const taken = places.get(key) ?? 0
  if (taken >= most) return undefined
  places.set(key, taken + 1)
  return {
    [Symbol.dispose]: () => {
      const left = (places.get(key) ?? 1) - 1
      if (left === 0) places.delete(key)
      else places.set(key, left)
    },
  }
}

const refused = (id: string, reason: string, message: string, waitMs?: number): Failure => ({
  ok: false,
  code: "rate_limited",
  message: `${id} ${message}; nothing was run`,
  ...(waitMs === undefined ? {} : { hint: `try again in ${Math.ceil(waitMs / 1000)} s` }),
  undone: true,
  details: { reason, sent: false, ...(waitMs === undefined ? {} : { retry_after_ms: waitMs }) },
})

const subjectOf = (tool: ToolContract): string => `tool ${tool.id}@${tool.major} ${tool.source.file}`
const placesOf = (core: Pick<HostCore, "data">, tool: ToolContract): string => `${core.data} ${subjectOf(tool)}`
const crowded = (id: string, most: number): Failure =>
  refused(id, "concurrency", `runs ${most} call${most === 1 ? "" : "s"} at once, as its contract says`)

/** A place among its calls, which belongs to the scope. A failure: there is none. */
export const takeItsPlace = (
  core: Pick<HostCore, "data">,
  tool: ToolContract,
  scope: AsyncDisposableStack,
): Failure | undefined => {
  const { concurrency } = tool.operation ?? {}
  if (concurrency === undefined) return undefined
  const place = takePlace(placesOf(core, tool), concurrency)
  if (place === undefined) return crowded(tool.id, concurrency)
  scope.use(place)
  return undefined
}

/** Its turn, and a look at whether there is a place for it: before anybody is asked. */
export const takeTurn = async (
  core: Pick<HostCore, "data" | "store">,
  tool: ToolContract,
): Promise<Failure | undefined> => {
  const { concurrency, rate } = tool.operation ?? {}
  if (concurrency !== undefined && (places.get(placesOf(core, tool)) ?? 0) >= concurrency)
    return crowded(tool.id, concurrency)
  if (rate === undefined) return undefined
  try {
    const store = await core.store()
    const wait = await store.turn({
      tenant: singleHost.tenant,
      subject: subjectOf(tool),
      at: now(),
      rate,
      patienceMs: 0,
    })
    return wait.given
      ? undefined
      : refused(tool.id, "rate_limit", `is called no more often than its contract says`, wait.waitMs)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return refused(tool.id, "rate_limit", "has a rate that cannot be counted, because the store cannot be had")
  }
}
