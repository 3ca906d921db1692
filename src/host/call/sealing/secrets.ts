/**
 * How a call's secrets reach what runs: which variable or file holds a value, which a placeholder, what the proxy puts in.
 * Pure.
 *
 * Guarantees: a profile holds names and placeholders, never a value; values are put in when the program is started, or at
 * the proxy. Files lie in the program's home, which is in memory then, and nowhere else. A secret that can only be given
 * in a way that this host does not have ends the call before anything runs.
 */
import { trustEnvironment } from "../../../egress-proxy/tls/trust.ts"
import type { EgressSubstitution } from "../../../egress-proxy/types.ts"
import type { EgressEntry } from "../../../manifest/values/egress-entry.ts"
import type { JsonObject } from "../../../manifest/types.ts"
import { inside, placeOf } from "../../drivers/paths.ts"
import type { Failure } from "../../failure.ts"
import type { BoundSecret } from "../../secrets/bind.ts"
import { routeOf } from "../../secrets/needs.ts"
import type { Secret } from "../../secrets/secret.ts"
import type { Step } from "../steps.ts"

interface HostedSecret {
  readonly value: Secret
  /** absent: to any host that the driver declares */
  readonly hosts?: readonly string[]
}

/** The value, where it may be sent to this host. */
export const sentTo = (secret: HostedSecret | undefined, host: string): string | undefined =>
  secret?.hosts === undefined || secret.hosts.includes(host.toLowerCase()) ? secret?.value.reveal() : undefined

export interface SealedSecrets {
  /** variables that hold a value; for the moment of the start alone */
  readonly env: Readonly<Record<string, Secret>>
  /** files of the home that hold a value, by their path below it; as `env` */
  readonly files: Readonly<Record<string, { readonly value: Secret; readonly mode: number }>>
  /** variables that hold a placeholder, and those that make the program trust the proxy */
  readonly placeholders: Readonly<Record<string, string>>
  readonly substitutions: readonly EgressSubstitution[]
  /** by the driver's name: what the host itself may send for it */
  readonly hosted: Readonly<Record<string, HostedSecret>>
  /** for the receipt and the digest: names, never values */
  readonly facts: readonly JsonObject[]
}

const noSecrets: SealedSecrets = Object.freeze({
  env: {},
  files: {},
  placeholders: {},
  substitutions: [],
  hosted: {},
  facts: [],
})

/** Below the home, in one spelling; undefined: it lies elsewhere. */
const homePath = (written: string): string | undefined => {
  const place = placeOf(written)
  const names = place.where === "home" ? place.glob.split("/").filter((name) => name !== "" && name !== ".") : []
  return names.length === 0 ? undefined : names.join("/")
}

/** At the same place as another one, or in the place of a folder on the way to it. */
const overlaps = (path: string, others: readonly string[]): boolean =>
  others.some((other) => other === path || other.startsWith(`${path}/`) || path.startsWith(`${other}/`))

const notServed = (slug: string, as: string): Failure => ({
  ok: false,
  code: "tool_unavailable",
  message: `the secret ${slug} is to be given as ${as}, which this host does not do`,
  hint: "add an exposure of kind `env` or `egress-substitute` to its SECRETS.md, or a `file` below `~/`",
  details: { secret: slug },
})

export const sealSecrets = (secrets: readonly BoundSecret[], egress: readonly EgressEntry[]): Step<SealedSecrets> => {
  if (secrets.length === 0) return { ok: true, value: noSecrets }
  const env: Record<string, Secret> = {}
  const files: Record<string, { value: Secret; mode: number }> = {}
  const hosted: Record<string, HostedSecret> = {}
  const placeholders: Record<string, string> = {}
  const substitutions: EgressSubstitution[] = []
  const facts: JsonObject[] = []
  for (const secret of secrets) {
    const { name, slug, value, grantedBy, bound } = secret
    const route = routeOf(secret, egress)
    if (bound && route.via === "unserved") return notServed(slug, `a ${route.kind}`)
    facts.push({
      slug,
      name,
      via: bound ? route.via : "none",
      granted_by: grantedBy,
      ...(route.via === "file" ? { path: route.path } : {}),
    })
    if (!bound) continue
    if (route.via === "file") {
      const path = homePath(route.path)
      if (path === undefined) return notServed(slug, `the file ${route.path}`)
      if (overlaps(path, Object.keys(files))) return notServed(slug, `the file ${route.path}, where another one is`)
      files[path] = { value, mode: route.mode }
    }
    if (route.via === "env") {
      env[name] = value
      hosted[name] = { value }
    }
    if (route.via !== "egress-substitute") continue
    placeholders[name] = route.placeholder
    if (route.hosts.length === 0) continue
    hosted[name] = { value, hosts: route.hosts }
    substitutions.push({ placeholder: route.placeholder, value: value.reveal(), hosts: route.hosts })
  }
  if (substitutions.length > 0) Object.assign(placeholders, trustEnvironment(inside.authority))
  return { ok: true, value: { env, files, placeholders, substitutions, hosted, facts } }
}

/** The variables as the program gets them. */
export const revealed = (env: SealedSecrets["env"]): Record<string, string> =>
  Object.fromEntries(Object.entries(env).map(([name, secret]) => [name, secret.reveal()]))
