/**
 * The proxy of one call: made from its policy, for a sandbox's channel or for the host's own dials.
 *
 * Guarantees: loaded at first need; each verdict is counted, so that what was reached and stopped can be told.
 */
import { readFile } from "node:fs/promises"
import type { EgressProxy } from "../../egress-proxy/proxy.ts"
import type { Tape } from "../../egress-proxy/tape/words.ts"
import type { TokenKeep } from "../../egress-proxy/tokens/held.ts"
import type { EgressPolicy } from "../../egress-proxy/types.ts"
import type { ServedEgress } from "../call/core.ts"
import type { OperatorConfig } from "../config/types.ts"
import { inside } from "../drivers/paths.ts"
import { HostStartError } from "../start-error.ts"

const SYSTEM_ROOTS = "/etc/ssl/certs/ca-certificates.crt"

/** The machine's own roots, and the authority of the call's proxy behind them. */
const trusted = async (caPem: string): Promise<string> => {
  const { bundleWith } = await import("../../egress-proxy/tls/trust.ts")
  return bundleWith(await readFile(SYSTEM_ROOTS, "utf8").catch(() => ""), caPem)
}

export const serveEgress = async (policy: EgressPolicy, tokens?: TokenKeep, tape?: Tape): Promise<ServedEgress> => {
  const { createEgressProxy } = await import("../../egress-proxy/index.ts")
  return served(policy, createEgressProxy, tokens, tape)
}

const served = async (
  policy: EgressPolicy,
  make: EgressProxy["heir"],
  tokens: TokenKeep | undefined,
  tape?: Tape,
): Promise<ServedEgress> => {
  const { boundBuffers } = await import("../data/socket-buffers.ts")
  const { entries, services, private: granted, budgets, readOnlyHttp, substitutions } = policy
  const reached = new Map<string, number>()
  const proxy = await make({
    onVerdict: ({ decision, host, port }) => {
      if (decision !== "allow" || host === undefined || port === undefined) return
      const target = `${host}:${port}`
      reached.set(target, (reached.get(target) ?? 0) + 1)
    },
    egress: entries.map((entry) => entry.text),
    services,
    private: granted,
    budgets,
    readOnlyHttp,
    substitutions,
    ...(policy.capture === undefined ? {} : { capture: policy.capture }),
    ...(tokens === undefined ? {} : { tokens }),
    ...(tape === undefined ? {} : { tape }),
    onDescriptor: boundBuffers,
  })
  const files = proxy.caPem === undefined ? {} : { [inside.authority]: Buffer.from(await trusted(proxy.caPem)) }
  return {
    files,
    serve(channel) {
      const serving = proxy.serve(channel)
      return { [Symbol.dispose]: () => void serving[Symbol.asyncDispose]() }
    },
    heir: (next, own) => served(next, proxy.heir, own),
    dial: (to) => proxy.dial(to),
    reached: () => {
      const carried = new Map(proxy.carried().map(({ target, ...bytes }) => [target, bytes]))
      return Array.from(reached, ([target, count]) => ({
        target,
        count,
        ...(carried.get(target) ?? { bytesOut: 0, bytesIn: 0 }),
      }))
    },
    denials: () => proxy.denials(),
    failures: () => proxy.failures(),
    nameFor: (address) => proxy.nameFor(address),
    [Symbol.asyncDispose]: () => proxy.close(),
  }
}

/** What the operator wrote about egress is checked by those who will enforce it, before the first call. */
export const checkEgress = async ({ file, egress }: OperatorConfig): Promise<void> => {
  if (Object.keys(egress.services).length === 0 && egress.private.length === 0) return
  const { createEgressProxy, PolicyError } = await import("../../egress-proxy/index.ts")
  try {
    const proxy = await createEgressProxy({ egress: [], services: egress.services, private: egress.private })
    await proxy.close()
  } catch (error) {
    if (!(error instanceof PolicyError)) throw error
    throw new HostStartError(
      "manifest_invalid",
      `${file ?? "the config"}: ${error.message}`,
      "correct `egress` in the config",
    )
  }
}
