/**
 * What an exit code means for a driver: its `exit_codes` first, then the reserved codes of AIP-29.
 *
 * Guarantees: a driver can only name codes that a tool may end with; a word that is none of them becomes the driver's
 * own `domain:code`, so that no program can make the host report a violation or a fault of its own.
 */
import { cliOf } from "../../../manifest/kinds/body.ts"
import type { DriverContract } from "../../../manifest/types.ts"
import type { ReasonCode } from "../../reasons.ts"
import { codeOfWord } from "../../invoke/spellings.ts"
import { isReasonCode } from "../../failure.ts"

/** Codes a program may claim by its exit code; the rest of the table is the host's to say. */
const claimable: ReadonlySet<ReasonCode> = new Set<ReasonCode>([
  "input_invalid",
  "input_unsupported",
  "not_found",
  "conflict",
  "auth_required",
  "auth_failed",
  "unauthorised",
  "rate_limited",
  "upstream_error",
  "timeout",
  "limit_exceeded",
  "output_invalid",
  "partial_effect",
  "compensation_failed",
])

type ExitMeaning =
  | { readonly ok: true }
  | { readonly ok: false; readonly code: ReasonCode | `${string}:${string}`; readonly word: string }

const reserved: Readonly<Record<number, string>> = {
  0: "ok",
  1: "error",
  2: "usage_error",
  4: "auth_required",
  124: "timeout",
  137: "killed",
}

/** What the driver's `exit_codes` calls this exit. */
export const exitWord = (driver: DriverContract, exitCode: number): string | undefined => {
  const codes = cliOf(driver)?.output.exitCodes ?? {}
  return Object.hasOwn(codes, String(exitCode)) ? codes[String(exitCode)] : undefined
}

/** The code that a driver's word for a failure is: one that it may claim, else one of its own. */
export const claimedCode = ({ id }: DriverContract, word: string): ReasonCode | `${string}:${string}` => {
  const code = codeOfWord(word)
  return isReasonCode(code) && claimable.has(code)
    ? code
    : `${id}:${word.replaceAll(/[^A-Za-z0-9_.-]/g, "_").slice(0, 64)}`
}

export const exitMeaning = (driver: DriverContract, exitCode: number): ExitMeaning => {
  const word = exitWord(driver, exitCode)
  if (word === "ok") return { ok: true }
  if (word === "error") return { ok: false, code: "upstream_error", word }
  if (word !== undefined) {
    return { ok: false, code: claimedCode(driver, word), word }
  }
  const meaning = reserved[exitCode]
  if (meaning === "ok") return { ok: true }
  // Many programs use 4 for something else; it only means a login where the driver has one.
  if (meaning === "auth_required" && driver.auth !== undefined)
    return { ok: false, code: "auth_required", word: meaning }
  if (meaning === "timeout") return { ok: false, code: "timeout", word: meaning }
  return {
    ok: false,
    code: "upstream_error",
    word: meaning === "auth_required" || meaning === undefined ? "error" : meaning,
  }
}
