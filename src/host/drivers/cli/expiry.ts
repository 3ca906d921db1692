/**
 * Whether an exit says that the driver's login is gone (`auth.expiry.detect`, C-40). Pure.
 *
 * Guarantees: exit code 1 alone never logs anyone out; it only asks for the completion check to be run.
 * Does not: change login state.
 */
import type { AuthSpec } from "../../../manifest/types.ts"

type ExpirySign = "none" | "expired" | "check-first"

/** `mapped`: what the driver's `exit_codes` calls this exit, if anything. */
export const expirySign = (auth: AuthSpec | undefined, exitCode: number, mapped: string | undefined): ExpirySign => {
  if (auth === undefined) return "none"
  if (mapped === "auth_required") return "expired"
  if (auth.expiry?.by !== "exit_code" || auth.expiry.code !== exitCode) return "none"
  return exitCode === 1 ? "check-first" : "expired"
}
