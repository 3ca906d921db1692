/**
 * Where packages come from: the operator's registries, and the hosts that a build may reach for them. Pure.
 *
 * Guarantees: a build reaches the registry, the hosts that the operator names beside it and, for the public Python index,
 * the one that serves its files; never beyond the operator's `egress.allow`.
 */
import { type EgressEntry, intersectEgress, parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import type { OperatorConfig } from "../config/types.ts"

export interface Registry {
  /** ends with a slash */
  readonly url: string
  /** `host:port` where it is spoken to without TLS, which the operator's own address alone makes so */
  readonly plain?: string
  readonly egress: readonly EgressEntry[]
  /** hosts that it needs and the operator's `egress.allow` leaves out */
  readonly closed: readonly string[]
}

/** The public index serves its files from another host. */
const FILES_OF: Readonly<Record<string, readonly string[]>> = { "pypi.org": ["files.pythonhosted.org:443"] }

const entryOf = (text: string): readonly EgressEntry[] => {
  const parsed = parseEgressEntry(text)
  return parsed.ok ? [parsed.entry] : []
}

export const registryFor = (source: "npm" | "pip", { install, egress }: OperatorConfig): Registry => {
  const url = new URL(source === "npm" ? install.npmRegistry : install.pipIndex)
  const port = url.port === "" ? (url.protocol === "https:" ? 443 : 80) : Number(url.port)
  const own = [`${url.hostname}:${port}`, ...(FILES_OF[url.hostname] ?? [])].flatMap(entryOf)
  const wanted = [...own, ...install.hosts]
  const allowed = egress.allow === undefined ? wanted : intersectEgress(wanted, egress.allow)
  const closed = wanted.filter(({ host }) => !allowed.some((entry) => entry.host === host)).map(({ text }) => text)
  return {
    url: url.href.endsWith("/") ? url.href : `${url.href}/`,
    ...(url.protocol === "http:" ? { plain: `${url.hostname}:${port}` } : {}),
    egress: allowed,
    closed,
  }
}
