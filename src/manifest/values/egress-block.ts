/**
 * The two places for egress, `network.egress` and `sandbox.network.egress`, → one effective list (C-2).
 *
 * Guarantees: both given: their intersection; one given: that one; none: no network. Every entry that is not
 * canonical is an error with the corrected spelling, in both modes.
 */
import { joinPath, shown } from "./diagnostics.ts"
import type { Report } from "./diagnostics.ts"
import { intersectEgress, parseEgressEntry } from "./egress-entry.ts"
import type { EgressEntry } from "./egress-entry.ts"
import { optionalObject, texts } from "./fields.ts"
import { limits } from "../limits.ts"
import type { JsonObject } from "../base-types.ts"

export interface DriverEgress {
  /** the effective egress of the driver (C-2: intersection where both places speak); empty: no network */
  readonly egress: readonly EgressEntry[]
  /** where the egress list came from, for the log (C-2) */
  readonly egressFrom: "network" | "sandbox.network" | "both" | "none"
  readonly ingress: readonly string[]
}

export function readEgressList(entries: readonly string[], path: string, report: Report): readonly EgressEntry[] {
  if (entries.length > limits.egressEntries) {
    report.error(
      "egress-too-many",
      path,
      `there are ${entries.length} entries; at most ${limits.egressEntries} are read`,
      "use `*.domain` entries",
    )
    return []
  }
  const found = new Map<string, EgressEntry>()
  entries.forEach((written, i) => {
    const parsed = parseEgressEntry(written)
    if (parsed.ok) found.set(parsed.entry.text, parsed.entry)
    else
      report.error(
        "egress-entry",
        joinPath(path, i),
        `\`${shown(written)}\`: ${parsed.message}`,
        parsed.fix === undefined
          ? "list each host as `host`, `host:port`, `*.host` or `tcp://host:port`"
          : `write \`${parsed.fix}\``,
      )
  })
  return [...found.values()]
}

export function readEgress(
  network: JsonObject | undefined,
  sandbox: JsonObject | undefined,
  report: Report,
): DriverEgress {
  const inner = sandbox === undefined ? undefined : optionalObject(sandbox, "network")
  const listOf = (block: JsonObject | undefined, path: string): readonly EgressEntry[] | undefined =>
    block === undefined ? undefined : readEgressList(texts(block, "egress"), path, report)
  const top = listOf(network, "network.egress")
  const boxed = listOf(inner, "sandbox.network.egress")
  const ingress = [
    ...new Set([
      ...(network === undefined ? [] : texts(network, "ingress")),
      ...(inner === undefined ? [] : texts(inner, "ingress")),
    ]),
  ]
  if (top !== undefined && boxed !== undefined) {
    const both = intersectEgress(top, boxed)
    if (both.length < Math.max(top.length, boxed.length)) {
      report.warn(
        "egress-two-places",
        "network.egress",
        "`network.egress` and `sandbox.network.egress` differ; only what both allow is reachable",
        "keep one of the two lists",
      )
    }
    return { egress: both, egressFrom: "both", ingress }
  }
  if (top !== undefined) return { egress: top, egressFrom: "network", ingress }
  if (boxed !== undefined) return { egress: boxed, egressFrom: "sandbox.network", ingress }
  return { egress: [], egressFrom: "none", ingress }
}
