/** A manifest that did not load, as the reason why a call cannot go on. */
import type { Failure } from "../failure.ts"
import type { FailedManifest } from "./types.ts"

/** What was asked for is in a manifest that did not load: the file, its first fault, and how to mend it. */
export const brokenManifest = ({ file, diagnostics }: FailedManifest): Failure => {
  const fault = diagnostics.find((one) => one.severity === "error") ?? diagnostics[0]
  const where = fault === undefined || fault.path === "" ? "" : `${fault.path}: `
  return {
    ok: false,
    code: "manifest_invalid",
    message: `the manifest ${file} is invalid: ${where}${fault?.message ?? "it did not load"}`,
    ...(fault === undefined ? {} : { hint: fault.fix }),
    details: { file, path: fault?.path ?? "" },
  }
}
