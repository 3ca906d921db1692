/** How an installation says that it did not work. */
import type { Failure } from "../failure.ts"
import type { InstallFailure } from "./types.ts"

export const failed = (message: string, hint: string, details: Failure["details"] = {}): InstallFailure => ({
  ok: false,
  code: "install_failed",
  message,
  hint,
  details,
})

/** What came is not what it should be: nothing else is tried either. */
export const mismatched = (message: string, details: Failure["details"] = {}): InstallFailure => ({
  ...failed(
    message,
    "find out who changed it before anything else is installed; where the author made a new one, the manifest needs its hash",
    { reason: "hash_mismatch", ...details },
  ),
  final: true,
})

export const cancelled: InstallFailure = {
  ok: false,
  code: "cancelled",
  message: "the installation was cancelled",
  details: {},
}

/** This machine cannot do it, whoever asks. */
export const notHere = (message: string, hint: string, details: Failure["details"] = {}): InstallFailure => ({
  ok: false,
  code: "tool_unavailable",
  message,
  hint,
  details,
})
