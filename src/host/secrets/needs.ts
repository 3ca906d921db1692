/**
 * Which secrets a call needs, by what its driver and contract name, and how each may reach the program. Pure.
 *
 * Guarantees: a variable of `auth.state.env` means the secret that says so of itself (`metadata.bindings.env`, or an
 * exposure by that name), else the one of that name in lower case (AIP-19). A secret whose author wants it put in at the
 * proxy never enters a sandbox, also where the call reaches none of its hosts. Rules in `access.bind` narrow what a
 * secret's scope allows: where there are any, one of them must fit (AIP-19: any is enough; kinds that this host does not
 * know grant nothing).
 */
import { matchSecretSlug, slugOfEnv } from "../../manifest/contracts/secrets.ts"
import type { DriverContract, SecretEntry, ToolContract } from "../../manifest/types.ts"
import { coversName, type EgressEntry, parseEgressEntry } from "../../manifest/values/egress-entry.ts"
import type { Caller } from "../access/caller.ts"
import { type Field, fieldFor } from "./fields.ts"

export interface SecretNeed {
  /** as the driver or the contract calls it */
  readonly name: string
  readonly slug: string
  /** what a SECRETS.md says of it */
  readonly entry?: SecretEntry
  /** the driver's program gets it; else it only has to be there */
  readonly bound: boolean
  /** nothing is missing where it is not there */
  readonly optional?: boolean
}

const names = (entry: SecretEntry, variable: string): boolean =>
  entry.env.includes(variable) ||
  entry.exposures.some(
    (exposure) =>
      (exposure.kind === "env" && exposure.name === variable) ||
      (exposure.kind === "egress-substitute" && exposure.placeholderName === variable),
  )

/** What a set-up step keeps for the driver's program. */
const keptBySetup = (setup: DriverContract["setup"]): readonly string[] =>
  setup.flatMap((step) => ("persist" in step && step.persist?.to === "env" ? [step.persist.name] : []))

export const secretNeeds = (
  driver: Pick<DriverContract, "auth"> & Partial<Pick<DriverContract, "setup">>,
  tool: Pick<ToolContract, "requires">,
  inventory: readonly SecretEntry[],
): readonly SecretNeed[] => {
  const slugs = new Set(inventory.map(({ slug }) => slug))
  const need = (name: string, slug: string, bound: boolean): SecretNeed => {
    const entry = inventory.find((each) => each.slug === slug)
    return { name, slug, bound, ...(entry === undefined ? {} : { entry }) }
  }
  const env = driver.auth?.state.env ?? []
  const bySlug = (name: string): SecretNeed =>
    need(name, inventory.find((entry) => names(entry, name))?.slug ?? slugOfEnv(name), true)
  // A login may leave its state in the home as well: then no secret has to be there (AIP-29 §Auth).
  const loginLeaves = driver.auth?.login === undefined ? {} : { optional: true }
  return [
    ...env.map((name) => ({ ...bySlug(name), ...loginLeaves })),
    ...keptBySetup(driver.setup ?? [])
      .filter((name) => !env.includes(name))
      .map((name) => ({ ...bySlug(name), optional: true })),
    ...tool.requires.secrets.map((name) =>
      need(name, matchSecretSlug(name, slugs) ?? name.replaceAll(".", "-"), false),
    ),
  ]
}

/** By which rule a call may have it; undefined: by none. */
export const grantedBy = (
  { entry }: SecretNeed,
  tool: Pick<ToolContract, "id">,
  { user, roles }: Pick<Caller, "user" | "roles">,
): string | undefined => {
  const rules = entry?.access.bind ?? []
  if (rules.length === 0) return "scope"
  const fits = rules.find(({ by, name }) => {
    if (by === "user") return name === user
    if (by === "tool") return name === tool.id
    return by === "role" && roles.some((role) => role === name)
  })
  return fits === undefined ? undefined : `${fits.by}:${fits.name}`
}

/** A file that a secret's author wants it in. */
export interface SecretFile {
  /** as it is written: absolute, or below `~/` */
  readonly path: string
  readonly mode: number
}

/** One way to the program, and the part of the value that goes it; `file` absent: as a variable, or at the proxy. */
interface SecretWay {
  readonly field: Field | undefined
  readonly file?: SecretFile
}

const hasVariable = ({ name, entry }: SecretNeed): boolean =>
  entry === undefined ||
  entry.exposures.length === 0 ||
  entry.env.includes(name) ||
  entry.exposures.some((exposure) => exposure.kind === "env" && exposure.name === name)

/** All ways that one secret goes. Put in at the proxy, it goes no other. */
export const waysOf = (need: SecretNeed): readonly SecretWay[] => {
  const { name, entry, bound } = need
  const variable: SecretWay = { field: fieldFor(entry, name) }
  const exposures = entry?.exposures ?? []
  if (!bound || exposures.some(({ kind }) => kind === "egress-substitute")) return [variable]
  const files = exposures.flatMap((exposure): readonly SecretWay[] =>
    exposure.kind === "file"
      ? [{ field: fieldFor(entry, name, exposure.field), file: { path: exposure.path, mode: exposure.mode } }]
      : [],
  )
  return files.length > 0 && !hasVariable(need) ? files : [variable, ...files]
}

type SecretRoute =
  | { readonly via: "env" }
  | ({ readonly via: "file" } & SecretFile)
  /** the program holds a placeholder, and the proxy puts the value in for these hosts */
  | { readonly via: "egress-substitute"; readonly placeholder: string; readonly hosts: readonly string[] }
  /** this host has no way to do it */
  | { readonly via: "unserved"; readonly kind: string }

/** How a secret reaches the driver's program. */
export const routeOf = (
  need: SecretNeed & { readonly file?: SecretFile },
  egress: readonly EgressEntry[],
): SecretRoute => {
  const { entry, file } = need
  if (file !== undefined) return { via: "file", ...file }
  const exposures = entry?.exposures ?? []
  const substituted = exposures.find((exposure) => exposure.kind === "egress-substitute")
  if (substituted?.kind === "egress-substitute") {
    const hosts = substituted.intendedProviders.flatMap((text) => {
      const parsed = parseEgressEntry(text)
      return parsed.ok && !parsed.entry.wildcard ? [parsed.entry.host] : []
    })
    return {
      via: "egress-substitute",
      placeholder: `$$SECRET[${substituted.placeholderName}]$$`,
      hosts: hosts.filter((host) => egress.some((each) => coversName(each, host))),
    }
  }
  return hasVariable(need) ? { via: "env" } : { via: "unserved", kind: exposures[0]?.kind ?? "none" }
}
