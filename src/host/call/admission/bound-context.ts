/**
 * Keys of a call's context that the operator fills: per tenant, user and workspace.
 *
 * Guarantees: what the operator bound for anybody is never a caller's to say, also where nothing is bound for this caller:
 * such a call is refused, and so is a tool whose context wants a key that is bound for others alone. Of entries that fit a
 * call, the one that says most wins. A tool that declares no such key is not handed it.
 * Assumes: a workspace is compared by its real path, as far as it has one.
 */
import { realpathSync } from "node:fs"
import { resolve } from "node:path"
import { deepFreeze } from "../../../manifest/values/freeze.ts"
import type { JsonObject, JsonValue, ToolContract } from "../../../manifest/types.ts"
import { isWithin, tenantOf } from "../../access/caller.ts"
import type { BoundContext } from "../../config/call-settings.ts"
import type { HostCore } from "../core.ts"
import type { Requested, Step } from "../steps.ts"

type Asked = Pick<Requested, "caller" | "request" | "empty">

/** Read by the host itself, whatever the tool declares. */
const HOST_KEYS: readonly string[] = ["pinnedProvider", "regionConstraint"]

const realOf = (path: string): string | undefined => {
  try {
    return realpathSync(path)
  } catch {
    return undefined
  }
}
const placeOf = ({ request, empty }: Asked): string | undefined =>
  request.workspace === undefined && empty !== undefined ? undefined : realOf(resolve(request.workspace ?? "."))

const fits = (bound: BoundContext, { caller }: Asked, place: string | undefined): boolean => {
  if (bound.tenant !== undefined && bound.tenant !== tenantOf(caller)) return false
  if (bound.user !== undefined && bound.user !== caller.user) return false
  if (bound.workspace === undefined) return true
  const root = realOf(bound.workspace)
  return place !== undefined && root !== undefined && isWithin(place, root)
}

const weight = ({ tenant, user, workspace }: BoundContext): readonly [number, number] => [
  [tenant, user, workspace].filter((one) => one !== undefined).length,
  workspace?.length ?? 0,
]

/** The least that is said comes first, so that what says more is put over it. */
const byWeight = (a: BoundContext, b: BoundContext): number => {
  const [[x, xs], [y, ys]] = [weight(a), weight(b)]
  return x - y || xs - ys
}

const declaresKey = ({ contextSchema }: ToolContract, key: string): boolean => {
  const properties = contextSchema?.["properties"]
  return typeof properties === "object" && properties !== null && Object.hasOwn(properties, key)
}

/** Is it the operator's to say, for whomever? */
export const isBoundKey = ({ config }: Pick<HostCore, "config">, asked: Asked, key: string): boolean => {
  const place = placeOf(asked)
  return config.context.some((bound) => Object.hasOwn(bound.values, key) && fits(bound, asked, place))
}

export const withBoundContext = (
  { config }: Pick<HostCore, "config">,
  asked: Asked,
  tool: ToolContract,
  given: JsonObject,
): Step<JsonObject> => {
  if (config.context.length === 0) return { ok: true, value: given }
  const bound = new Set(config.context.flatMap(({ values }) => Object.keys(values)))
  const taken = Object.keys(given).find((key) => bound.has(key))
  if (taken !== undefined)
    return {
      ok: false,
      code: "unauthorised",
      message: `context \`${taken}\` is filled by the host, and no caller says what it is`,
      hint: "leave it out",
      details: { field: taken },
    }
  const place = placeOf(asked)
  const filled: Record<string, JsonValue> = {}
  for (const one of config.context.filter((each) => fits(each, asked, place)).toSorted(byWeight))
    for (const [key, value] of Object.entries(one.values))
      if (declaresKey(tool, key) || HOST_KEYS.includes(key)) filled[key] = value
  const missing = [...bound].find((key) => declaresKey(tool, key) && !Object.hasOwn(filled, key))
  if (missing !== undefined)
    return {
      ok: false,
      code: "unauthorised",
      message: `context \`${missing}\` is filled by the host, and nothing is set for this caller`,
      hint: "ask the operator to name this caller in `context` of caisson.yaml",
      details: { field: missing },
    }
  return { ok: true, value: deepFreeze({ ...given, ...filled }) }
}
