/**
 * One health check of one driver (AIP-30), by the way that its manifest says.
 *
 * Guarantees: a program runs in a sandbox without network, secrets or workspace; a service is asked through the driver's
 * own channel, without secrets, and held to the operator's `read_only_http`. Whatever happens within the check's time is a result; what it says is bounded and ours.
 */
import type { EgressPolicy } from "../../egress-proxy/types.ts"
import type { HealthCheck, HttpProbe } from "../../manifest/types.ts"
import { type EgressEntry, intersectEgress } from "../../manifest/values/egress-entry.ts"
import type { OperatorConfig } from "../config/types.ts"
import type { DriverAvailability } from "../drivers/kind.ts"
import { kindOf } from "../drivers/kinds.ts"
import { prepareProbe, type Probe } from "../drivers/program/version-check.ts"
import { systemFolders } from "../drivers/program/program.ts"
import { egressBudgets } from "../limits.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import { ask, type Outlet } from "./ask.ts"

export type Found = { readonly ok: true } | { readonly ok: false; readonly reason: string }

/** A driver that could serve, as its kind found it. */
export interface Checkable {
  readonly driver: RegisteredDriver
  readonly found: Extract<DriverAvailability, { available: true }>
}

interface CheckOptions {
  readonly config: OperatorConfig
  readonly probe: Probe
  readonly egressProxy: (policy: EgressPolicy) => Promise<Outlet & AsyncDisposable>
}

const ok: Found = { ok: true }
const failed = (reason: string): Found => ({ ok: false, reason })

const policyOf = ({ egress, readOnlyHttp }: OperatorConfig, entries: readonly EgressEntry[]): EgressPolicy => ({
  entries: egress.allow === undefined ? entries : intersectEgress(entries, egress.allow),
  services: egress.services,
  private: egress.private,
  budgets: { ...egressBudgets, ...egress.budgets },
  // No contract says that a check changes anything.
  readOnlyHttp,
  substitutions: [],
})

const askService = async (
  { config, egressProxy }: CheckOptions,
  { driver }: Checkable,
  probe: Pick<HttpProbe, "url" | "method">,
  signal: AbortSignal,
): ReturnType<typeof ask> => {
  await using served = await egressProxy(policyOf(config, driver.contract.egress))
  return await ask(served, probe, signal)
}

const http = async (options: CheckOptions, of: Checkable, probe: HttpProbe, signal: AbortSignal): Promise<Found> => {
  const answer = await askService(options, of, probe, signal)
  if (!answer.ok) return failed(`${new URL(probe.url).host}: ${answer.reason}`)
  const { expectStatus } = probe
  const isExpected =
    expectStatus === undefined ? answer.status >= 200 && answer.status < 300 : answer.status === expectStatus
  return isExpected ? ok : failed(`${new URL(probe.url).host} answered ${answer.status}`)
}

const exec = async (
  { probe }: CheckOptions,
  { driver: { contract }, found }: Checkable,
  { cmd, expectExit, timeoutMs }: Extract<HealthCheck, { method: "exec" }>,
): Promise<Found> => {
  if (found.program === undefined) return failed("its check starts a program, and it has none")
  const what = { check: { cmd, timeoutMs }, program: found.program, bin: found.program.name, env: {}, children: true }
  const prepared = prepareProbe(contract, what, systemFolders)
  if (!prepared.ok) return failed(prepared.reason)
  const result = await probe(prepared.request)
  if (!result.ran) return failed(result.reason)
  if (result.exit === null) return failed(`its check did not finish within ${timeoutMs} ms`)
  return result.exit === expectExit ? ok : failed(`its check exited with ${result.exit}`)
}

const ping = async (options: CheckOptions, of: Checkable, signal: AbortSignal): Promise<Found> => {
  const url = kindOf(of.driver.contract)?.service?.(of.driver.contract)
  // What it runs was found to be there already.
  if (url === undefined) return ok
  const answer = await askService(options, of, { url, method: "HEAD" }, signal)
  if (!answer.ok) return failed(`${new URL(url).host}: ${answer.reason}`)
  return answer.status < 500 ? ok : failed(`${new URL(url).host} answered ${answer.status}`)
}

export const runCheck = async (
  options: CheckOptions,
  of: Checkable,
  check: HealthCheck,
  closing: AbortSignal,
): Promise<Found> => {
  const signal = AbortSignal.any([closing, AbortSignal.timeout(check.timeoutMs)])
  try {
    switch (check.method) {
      case "noop":
        return ok
      case "ping":
        return await ping(options, of, signal)
      case "exec":
        return await exec(options, of, check)
      case "http":
        return await http(options, of, check.probe, signal)
    }
  } catch (error) {
    return failed(`it could not be checked (${error instanceof Error ? error.name : "unknown"})`)
  }
}
