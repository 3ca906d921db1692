/**
 * `defineSecret`: that there is a secret, and who may have it (AIP-19); never what it is.
 *
 * Guarantees: an entry with a value in it is refused before anything else looks at it. `checkAccess` is a no where no
 * entry fits, and names the one that does. Does not: reveal. A value is read by a host, for one process, and is handed
 * to no caller of this library.
 */
import type { SecretsInventory } from "../manifest/types.ts"
import { deepFreeze } from "../manifest/values/freeze.ts"
import { definer, frontOf, make } from "./made.ts"
import type {
  AccessEntry,
  AccessVerdict,
  DefineOptions,
  SecretDefinition,
  SecretHandle,
  SecretRequest,
} from "./types.ts"

const fits = (entry: AccessEntry, { roles, userId, caps, tool, workflow }: SecretRequest): boolean =>
  ("role" in entry && roles?.includes(entry.role) === true) ||
  ("userId" in entry && userId === entry.userId) ||
  ("cap" in entry && caps?.includes(entry.cap) === true) ||
  ("tool" in entry && tool === entry.tool) ||
  ("workflow" in entry && workflow === entry.workflow)

export const defineSecret = (definition: SecretDefinition, options: DefineOptions = {}): SecretHandle => {
  const by = definer("defineSecret", "secret", definition.slug, options)
  const made = make<SecretsInventory>(by, "secrets", frontOf(by, { secrets: [definition] }, {}))
  const [written] = made.front["secrets"] as unknown as readonly SecretDefinition[]
  const { slug, kind = "opaque", access = {}, audit = {} } = written ?? definition
  const grants = deepFreeze({ reveal: access.reveal ?? [], bind: access.bind ?? [], rotate: access.rotate ?? [] })
  return Object.freeze({
    doctype: "secrets" as const,
    file: made.file,
    front: made.front,
    slug,
    ...(slug.includes("/") ? { namespace: slug.slice(0, slug.indexOf("/")) } : {}),
    kind,
    access: grants,
    audit: deepFreeze({ pii: false, classification: [], ...audit }),
    checkAccess(operation: keyof typeof grants, request: SecretRequest): AccessVerdict {
      const entry = grants[operation].find((each) => fits(each, request))
      return entry === undefined
        ? { granted: false, reason: `no entry of \`access.${operation}\` of ${slug} names who asks` }
        : { granted: true, granted_by: entry }
    },
  })
}
