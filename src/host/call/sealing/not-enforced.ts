/** What cannot be enforced here ends the call, with nothing run. */
import type { Unavailable } from "../../../sandbox/backend.ts"
import type { Failure } from "../../failure.ts"

export const notEnforced = ({ control, message, fix }: Omit<Unavailable, "ok">): Failure => ({
  ok: false,
  code: "sandbox_unavailable",
  message,
  hint: fix,
  details: { control },
})
