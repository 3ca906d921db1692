/** A run that the sandbox or its layers refused, as the call's failure. */
import type { Unavailable } from "../../../sandbox/backend.ts"
import type { Failure } from "../../failure.ts"
import { notEnforced } from "../sealing/not-enforced.ts"

type File = NonNullable<Unavailable["file"]>
const CODES: Partial<Readonly<Record<File["fault"], Failure["code"]>>> = {
  hidden: "policy_violation",
  forbidden: "unauthorised",
  changed: "conflict",
  too_large: "limit_exceeded",
  full: "limit_exceeded",
  ended: "cancelled",
}

/** A file that the contract hands over is not there to be: nothing ran (AIP-16). */
const notStaged = ({ message, fix }: Unavailable, { name, path, fault }: File): Failure => ({
  ok: false,
  code: CODES[fault] ?? "input_invalid",
  message: `${message}; nothing was run`,
  hint: fix,
  details: { file: name, path, reason: fault },
})

/** Not run at all; or run, and what it changed is more than can be told and judged. */
export const notTaken = (refusal: Unavailable): Failure =>
  refusal.file !== undefined
    ? notStaged(refusal, refusal.file)
    : refusal.control === "write-set"
      ? {
          ok: false,
          code: "limit_exceeded",
          message: `${refusal.message}; nothing was committed`,
          hint: refusal.fix,
          details: { limit: refusal.control },
        }
      : notEnforced(refusal)
