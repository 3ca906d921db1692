/**
 * The limits of the operator's policies (AIP-38): how many calls in a time, how many sandboxes at once.
 *
 * Guarantees: both are shared by all hosts on the data folder. Calls are counted in stretches of time that begin where the
 * calendar says (UTC), before anybody is asked about them and whatever becomes of them. A place is the kernel's lock on a
 * file: it is free again when the call ends, however it ends, and when its host dies. What cannot be counted is used up.
 */
import { createHash } from "node:crypto"
import { limitLocksFolder } from "../../../data-folder/paths.ts"
import { takeLockIn } from "../../../sandbox/effects/index.ts"
import { subjectOf, tenantOf } from "../../access/caller.ts"
import { type HeldLimit, limitsOf } from "../../access/grants.ts"
import { accessPolicyOf } from "../../access/policy.ts"
import { KEEP_MS } from "../../access/spending.ts"
import { workspaceId } from "../../data/workspaces.ts"
import type { Failure } from "../../failure.ts"
import { StoreUnavailable } from "../../store/store.ts"
import type { HostCore } from "../core.ts"
import type { Admitted } from "../steps.ts"

type Limited = Pick<Admitted, "caller" | "tool" | "action" | "folder">

const SPANS = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const

const limitsFor = (core: HostCore, { tool, action }: Limited, kind: HeldLimit["kind"]): readonly HeldLimit[] =>
  limitsOf(accessPolicyOf(core.registry, core.config).grants, {
    tool,
    ...(action === undefined ? {} : { action }),
  }).filter((limit) => limit.kind === kind)

/** Whose account it is, apart from the tenant's. */
const whose = (core: HostCore, { caller, tool, folder }: Limited, { scope }: HeldLimit): string => {
  if (scope === "user") return caller.user
  if (scope === "tool") return `${tool.id}@${tool.major}`
  return scope === "workspace" ? workspaceId(core.data, folder.identity) : ""
}
const accountOf = (core: HostCore, call: Limited, limit: HeldLimit): string =>
  JSON.stringify([
    "limit",
    limit.policy,
    limit.index,
    limit.kind,
    limit.per ?? "",
    limit.scope ?? "",
    whose(core, call, limit),
  ])

const refused = (core: HostCore, call: Limited, limit: HeldLimit, what: string, waitMs?: number): Failure => ({
  ok: false,
  code: "rate_limited",
  message: `the policy ${limit.policy} allows ${limit.value} ${what}; nothing was run`,
  ...(waitMs === undefined ? {} : { hint: `try again in ${Math.ceil(waitMs / 1000)} s` }),
  undone: true,
  details: {
    reason: "limit-exceeded",
    policy: limit.policy,
    sent: false,
    ...(waitMs === undefined ? {} : { retry_after_ms: waitMs }),
  },
  evidence: {
    access: {
      decision: "deny",
      reason: "limit-exceeded",
      principal: `user://${subjectOf(call.caller)}`,
      action: call.action?.id ?? call.tool.id,
      policy: limit.policy,
      chain: accessPolicyOf(core.registry, core.config).grants.map(({ id }) => id),
      limit: limit.kind,
    },
  },
})

/** One call more, on every account or on none. */
export const countCall = async (core: HostCore, call: Limited): Promise<Failure | undefined> => {
  const limits = limitsFor(core, call, "rate-tool-calls")
  if (limits.length === 0) return undefined
  const at = Date.now()
  const sinceOf = ({ per = "day" }: HeldLimit): number => Math.floor(at / SPANS[per]) * SPANS[per]
  try {
    const spent = await (await core.store()).spend({
      tenant: tenantOf(call.caller),
      units: 0,
      accounts: limits.map((limit) => ({
        subject: accountOf(core, call, limit),
        sinceMs: sinceOf(limit),
        most: { calls: limit.value },
      })),
      forgetMs: at - KEEP_MS,
    })
    const limit = spent.ok ? undefined : limits[spent.index]
    if (limit === undefined) return undefined
    const { per = "day" } = limit
    return refused(core, call, limit, `calls a ${per}`, sinceOf(limit) + SPANS[per] - at)
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    const [limit] = limits
    return (
      limit && refused(core, call, limit, "calls in a time, and they cannot be counted because the store cannot be had")
    )
  }
}

function* placesOf(key: string, most: number): Generator<string> {
  for (let place = 1; place <= most; place += 1) yield `${key}-${place}`
}

/** A place for its sandbox, on every account; they belong to the scope. */
export const takeSandbox = (core: HostCore, call: Limited, scope: AsyncDisposableStack): Failure | undefined => {
  for (const limit of limitsFor(core, call, "max-concurrent-sandboxes")) {
    const account = JSON.stringify([tenantOf(call.caller), accountOf(core, call, limit)])
    const key = createHash("sha256").update(account).digest("hex").slice(0, 32)
    const place = takeLockIn(limitLocksFolder(core.data), placesOf(key, limit.value))
    if (place === undefined) return refused(core, call, limit, `sandbox${limit.value === 1 ? "" : "es"} at once`)
    scope.use(place)
  }
  return undefined
}
