/**
 * A caller's own name for a call, so that asking twice does not run it twice.
 *
 * Guarantees: pure. The key's digest holds who asks, for whom and in which tenant, so that nobody meets another's call by
 * guessing its key; the payload's digest holds all that is asked, so that a key never stands for two things.
 */
import { createHash } from "node:crypto"
import type { JsonValue } from "../../manifest/types.ts"
import { digestOf } from "../../manifest/values/digest.ts"
import { type Caller, tenantOf } from "../access/caller.ts"
import type { CallKey } from "../store/store.ts"
import type { CallRequest } from "../types.ts"

const KEY = /^[\x21-\x7e]{1,255}$/

/** Printable, without blanks, and short: it comes as a header's value. */
export const isCallKey = (text: string): boolean => KEY.test(text)

export const callKeyOf = (key: string, caller: Caller, request: CallRequest): CallKey | undefined => {
  try {
    const { tool, input, workspace, context, driver, plan } = request
    const asked = JSON.parse(JSON.stringify({ tool, input, workspace, context, driver, plan })) as JsonValue
    const whose = JSON.stringify([tenantOf(caller), caller.actor, caller.user, key])
    return { digest: createHash("sha256").update(whose).digest("hex"), payload: digestOf(asked) }
  } catch {
    // What is no JSON is refused by `admit`, and needs no key for that.
    return undefined
  }
}
