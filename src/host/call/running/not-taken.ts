/** A run that the sandbox or its layers refused, as the call's failure. */
import type { Unavailable } from "../../../sandbox/backend.ts"
import type { Failure } from "../../failure.ts"
import { notEnforced } from "../sealing/not-enforced.ts"

/** Not run at all; or run, and what it changed is more than can be told and judged. */
export const notTaken = (refusal: Unavailable): Failure =>
  refusal.control === "write-set"
    ? {
        ok: false,
        code: "limit_exceeded",
        message: `${refusal.message}; nothing was committed`,
        hint: refusal.fix,
        details: { limit: refusal.control },
      }
    : notEnforced(refusal)
