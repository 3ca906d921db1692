/**
 * What the call may use: the host's defaults, replaced by the operator's, narrowed by the driver and the contract.
 *
 * Guarantees: a driver or contract only narrows. A limit that somebody named is listed as required, so that a machine
 * that cannot enforce it refuses the call; the deadline always is. Pure.
 */
import type { DriverLimits } from "../../../manifest/types.ts"
import type { LimitName, Limits } from "../../../sandbox/backend.ts"
import { type EffectiveTimeout, effectiveTimeout } from "../../invoke/retry.ts"
import { defaultLimits } from "../../limits.ts"
import type { OperatorConfig } from "../../config/types.ts"
import type { Speakers } from "../../invoke/retry.ts"

const MiB = 1024 * 1024

interface SealedLimits {
  readonly limits: Limits
  readonly required: readonly LimitName[]
  readonly timeout: EffectiveTimeout
}

/** What a driver's own words name, in the sandbox's units. */
const declaredBy = ({
  memoryMb,
  cpuMs,
  diskMb,
  pids,
  outputBytes,
}: DriverLimits): Partial<Record<LimitName, number>> => {
  const named = {
    memoryBytes: memoryMb === undefined ? undefined : memoryMb * MiB,
    cpuMs,
    diskBytes: diskMb === undefined ? undefined : diskMb * MiB,
    pids,
    outputBytes,
  }
  return Object.fromEntries(Object.entries(named).filter(([, value]) => value !== undefined)) as Partial<
    Record<LimitName, number>
  >
}

export const sealLimits = (speakers: Speakers, config: OperatorConfig): SealedLimits => {
  const declared = declaredBy(speakers.driver.limits)
  const timeout = effectiveTimeout(speakers, config.limits.wallMs)
  const limits: Partial<Record<LimitName, number>> = { ...defaultLimits, ...config.limits, wallMs: timeout.ms }
  for (const [name, most] of Object.entries(declared) as [LimitName, number][])
    limits[name] = Math.min(limits[name] ?? most, most)
  const required = new Set<LimitName>([
    "wallMs",
    ...(Object.keys(config.limits) as LimitName[]),
    ...(Object.keys(declared) as LimitName[]),
  ])
  return { limits: limits as Limits, required: [...required].sort(), timeout }
}
