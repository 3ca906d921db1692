/**
 * Whether a failed call says that the driver's login is gone (`auth.expiry.detect`, C-40), for every kind. Pure.
 *
 * Guarantees: the driver's own sign counts by itself, but for exit code 1, which every ordinary failure has too; that one,
 * and a 401 that the driver says nothing of, only ask for the login to be proven. Does not: change any login.
 */
import type { AuthSpec } from "../../manifest/types.ts"
import type { Failure } from "../failure.ts"

/** What of a failure may be a sign. */
interface Signs {
  readonly exitCode?: number
  /** what the driver's `exit_codes` calls this exit, if anything */
  readonly mapped?: string | undefined
  readonly status?: number | undefined
  /** the error's class and those above it */
  readonly classes?: readonly string[]
  /** by a name in lower case */
  readonly header?: (name: string) => string | undefined
}

export const expirySign = (auth: AuthSpec | undefined, signs: Signs): Failure["expiry"] => {
  if (auth === undefined) return undefined
  const { exitCode, mapped, status, classes = [], header = () => undefined } = signs
  if (mapped === "auth_required") return "expired"
  const { expiry } = auth
  if (expiry?.by === "exit_code" && expiry.code === exitCode) return exitCode === 1 ? "perhaps" : "expired"
  if (expiry?.by === "http_status" && expiry.status === status) return "expired"
  if (expiry?.by === "exception" && classes.includes(expiry.name)) return "expired"
  if (expiry?.by === "header" && header(expiry.name.toLowerCase())?.trim() === expiry.value) return "expired"
  const isSignedIn = auth.login !== undefined || auth.refresh !== undefined || auth.provider !== undefined
  return status === 401 && isSignedIn ? "perhaps" : undefined
}

/** The failure with its sign, where it has one; told as an ended login only where that is certain. */
export const withSign = (failure: Failure, sign: Failure["expiry"], message: string): Failure => {
  if (sign === undefined) return failure
  return sign === "expired"
    ? { ...failure, code: "auth_required", message, expiry: sign }
    : { ...failure, expiry: sign }
}
