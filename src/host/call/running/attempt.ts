/**
 * One run of the program under its profile: prepare, serve the channel, run, read how it ended.
 *
 * Guarantees: sandbox and proxy belong to the scope that is handed in and live no longer than it; what the proxy and
 * the kernel stopped is counted together. A backend that cannot enforce the profile ends the call with nothing run.
 */
import { mkdirSync } from "node:fs"
import { explainDenial, namedDenial } from "../../../egress-proxy/policy/explain.ts"
import type { CollectedSandbox, Denial, Unavailable } from "../../../sandbox/backend.ts"
import { collect } from "../../../sandbox/collect.ts"
import { jobOf, shapeOf } from "../../../sandbox/profile.ts"
import { endingFailure } from "../../invoke/error-map.ts"
import type { Failure } from "../../failure.ts"
import { tail } from "../../invoke/stream-text.ts"
import { hostLimits } from "../../limits.ts"
import type { HostCore, ServedEgress } from "../core.ts"
import { notEnforced } from "../sealing/not-enforced.ts"
import { kindCall } from "../seal.ts"
import type { Attempt, Sealed, Step } from "../steps.ts"

/** Not run at all; or run, and what it changed is more than can be told and judged. */
const notTaken = (refusal: Unavailable): Failure =>
  refusal.control === "write-set"
    ? {
        ok: false,
        code: "limit_exceeded",
        message: `${refusal.message}; nothing was committed`,
        hint: refusal.fix,
        details: { limit: refusal.control },
      }
    : notEnforced(refusal)

/** Rows for the same thing become one. */
const mergeDenials = (...lists: readonly (readonly Denial[])[]): readonly Denial[] => {
  const merged = new Map<string, Denial>()
  for (const denial of lists.flat()) {
    const key = JSON.stringify([denial.layer, denial.reason, denial.target])
    merged.set(key, { ...denial, count: denial.count + (merged.get(key)?.count ?? 0) })
  }
  return [...merged.values()]
}

/** How it ended is the same for every kind; what it wrote, its own kind reads. */
const outcomeOf = (sealed: Sealed, { ending, stdout, stderr }: CollectedSandbox): Attempt["outcome"] => {
  const { tool, profile, timeout, kind, command } = sealed
  if (ending.by === "exit") return kind.read(kindCall(sealed), command, { exitCode: ending.code, stdout, stderr })
  const failure = endingFailure(ending, { tool, network: profile.network !== "none", timeoutMs: timeout.ms })
  return { ...failure, details: { ...failure.details, stderr: tail(stderr) } }
}

/** Hosts that were allowed and could not be reached: what the program took for a site's answer was the proxy's. */
const withUnreachable = (outcome: Attempt["outcome"], failures: readonly Denial[]): Attempt["outcome"] => {
  if (outcome.ok || failures.length === 0) return outcome
  const unreachable = failures
    .slice(0, hostLimits.unreachable.value)
    .map(({ reason, target, count }) => ({ reason, target, count, ...explainDenial({ reason, target }) }))
  return { ...outcome, details: { ...outcome.details, unreachable } }
}

interface AttemptOptions {
  /** what is left of the call's time */
  readonly wallMs: number
  /** what earlier attempts were denied */
  readonly earlier: readonly Denial[]
  readonly scope: AsyncDisposableStack
}

export const attempt = async (
  core: HostCore,
  sealed: Sealed,
  { wallMs, earlier, scope }: AttemptOptions,
): Promise<Step<Attempt>> => {
  const { profile, egress, command, folder, signal } = sealed
  if (profile.home !== undefined) mkdirSync(profile.home.dir, { recursive: true, mode: 0o700 })
  const backend = await core.backend()
  const prepared = await backend.prepare(shapeOf(profile), signal)
  if (!prepared.ok) return notEnforced(prepared)
  scope.use(prepared)
  let proxy: ServedEgress | undefined
  if (egress !== undefined) {
    if (prepared.channel === "none")
      return notEnforced({
        control: "egress-channel",
        message: "the sandbox was made without the channel that its network needs",
        fix: "run `caisson doctor`",
      })
    proxy = scope.use(await core.egressProxy(egress))
    proxy.serve(prepared.channel)
  }
  const job = jobOf(profile, { argv: command.argv, workspace: folder.identity, wallMs, files: proxy?.files ?? {} })
  const running = await prepared.start(job, signal)
  if (!running.ok) return notTaken(running)
  scope.use(running)
  for (const stream of ["stdout", "stderr"] as const)
    running[stream].on("data", (bytes: Uint8Array) => sealed.tell({ type: "output", stream, bytes }))
  const exited = await collect(running, { stdin: command.stdin, outputBytes: profile.limits.outputBytes })
  if (!exited.ok) return notTaken(exited)
  scope.use(exited)
  const nameFor = (address: string): string | undefined => proxy?.nameFor(address)
  const tapped = exited.denied.map((denial) => (denial.layer === "egress" ? namedDenial(denial, nameFor) : denial))
  return {
    ok: true,
    value: {
      exited,
      reached: proxy?.reached() ?? [],
      denied: mergeDenials(earlier, tapped, proxy?.denials() ?? []),
      outcome: withUnreachable(outcomeOf(sealed, exited), proxy?.failures() ?? []),
    },
  }
}
