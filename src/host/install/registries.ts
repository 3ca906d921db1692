/**
 * Where packages come from: the operator's registries, and the hosts that a build may reach for them. Pure.
 *
 * Guarantees: a build reaches the registry, the hosts that the operator names beside it and, for public ones, those that
 * serve their files; never beyond the operator's `egress.allow`.
 */
import { portOf } from "../../manifest/values/address.ts"
import { type EgressEntry, intersectEgress, parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import type { OperatorConfig } from "../config/types.ts"

interface Reach {
  readonly egress: readonly EgressEntry[]
  /** hosts that it needs and the operator's `egress.allow` leaves out */
  readonly closed: readonly string[]
}

export interface Registry extends Reach {
  /** ends with a slash */
  readonly url: string
  /** a folder of this machine that it is instead */
  readonly folder?: string
  /** the key of `install` in caisson.yaml that names it */
  readonly setting: string
  /** `host:port` where it is spoken to without TLS, which the operator's own address alone makes so */
  readonly plain?: string
  /** the one that everybody has without naming it */
  readonly isPublic: boolean
}

/** Public ones serve their files from other hosts. */
const FILES_OF: Readonly<Record<string, readonly string[]>> = {
  "pypi.org": ["files.pythonhosted.org:443"],
  "index.crates.io": ["static.crates.io:443", "crates.io:443"],
  "github.com": [
    "objects.githubusercontent.com:443",
    "release-assets.githubusercontent.com:443",
    "codeload.github.com:443",
    "raw.githubusercontent.com:443",
  ],
  "dl.k8s.io": ["cdn.dl.k8s.io:443"],
}

const entryOf = (text: string): readonly EgressEntry[] => {
  const parsed = parseEgressEntry(text)
  return parsed.ok ? [parsed.entry] : []
}

/** What may be reached to fetch from these addresses. */
export const reachOf = (urls: readonly URL[], { install, egress }: OperatorConfig): Reach => {
  const texts = urls.flatMap((url) => [`${url.hostname}:${portOf(url)}`, ...(FILES_OF[url.hostname] ?? [])])
  const wanted = [...[...new Set(texts)].flatMap(entryOf), ...install.hosts]
  const allowed = egress.allow === undefined ? wanted : intersectEgress(wanted, egress.allow)
  const closed = wanted.filter(({ host }) => !allowed.some((entry) => entry.host === host)).map(({ text }) => text)
  return { egress: allowed, closed }
}

const SETTINGS = { npm: "npm_registry", pip: "pip_index", cargo: "cargo_registry", go: "go_proxy" } as const
const PUBLIC: readonly string[] = ["https://index.crates.io/", "https://proxy.golang.org/"]

export const registryFor = (source: keyof typeof SETTINGS, config: OperatorConfig): Registry => {
  const { npmRegistry: npm, pipIndex: pip, cargoRegistry: cargo, goProxy: go } = config.install
  const address = { npm, pip, cargo, go }[source]
  const setting = SETTINGS[source]
  if (typeof address !== "string") {
    const { folder } = address
    return { url: `file://${folder}`, folder, setting, egress: [], closed: [], isPublic: false }
  }
  const url = new URL(address)
  const href = url.href.endsWith("/") ? url.href : `${url.href}/`
  return {
    url: href,
    setting,
    ...(url.protocol === "http:" ? { plain: `${url.hostname}:${portOf(url)}` } : {}),
    isPublic: PUBLIC.includes(href),
    ...reachOf([url], config),
  }
}
