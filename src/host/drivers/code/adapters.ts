/**
 * A program's output as the driver's own functions read it: `parseOutput` in the place of the host's formats,
 * `detectExpiry` beside its signs.
 *
 * Guarantees: they run in a sandbox of their own, without network, secrets or workspace, after the program ended; within
 * the call's own time; what they say is the driver's word and is judged like any output. A function that fails fails the
 * call, and never passes it.
 * Of codes, a driver may claim those that its program may.
 */
import type { JsonObject, JsonValue, OutputFormat } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { isObject } from "../../invoke/schema-path.ts"
import { decode, tail } from "../../invoke/stream-text.ts"
import { claimedCode } from "../cli/exit-code.ts"
import type { KindCall, KindResult, ProgramCommand } from "../kind.ts"
import type { OwnFunctions } from "../runner/found-module.ts"

type Outcome = Success | Failure

const failed = (call: KindCall, name: string, why: string): Failure => ({
  ok: false,
  code: "output_parse_failed",
  message: `\`${name}\` of ${call.driver.key} gave no answer: ${why}`,
  hint: "mend the function in the driver's module",
  details: { function: name },
})

/** Bytes that are no text come as base64; the format says which it is. */
const argumentsOf = ({ exitCode, stdout, stderr }: KindResult, format: OutputFormat): JsonObject => ({
  exitCode,
  stdout: format === "binary" ? Buffer.from(stdout.bytes).toString("base64") : decode(stdout).text,
  stderr: decode(stderr).text,
  expected: { format },
})

const ask = async (
  call: KindCall,
  own: OwnFunctions,
  name: string,
  args: JsonObject,
  signal: AbortSignal,
): Promise<{ readonly ok: true; readonly value: JsonValue } | Failure> => {
  const answer = await own.call(name, [args], signal)
  if (answer.ok) return { ok: true, value: answer.value }
  return failed(call, name, answer.kind === "thrown" ? (answer.thrown.names[0] ?? "Error") : answer.message)
}

/** `ParseOutputResult` (AIP-30), as the call's outcome. */
const parsed = (call: KindCall, value: JsonValue, result: KindResult): Outcome => {
  if (!isObject(value) || typeof value["ok"] !== "boolean") return failed(call, "parseOutput", "it is no result")
  if (value["ok"]) return { ok: true, value: value["value"] ?? null, notes: [] }
  const error = isObject(value["error"]) ? value["error"] : {}
  const { code, message, retryable } = error
  return {
    ok: false,
    code: claimedCode(call.driver.contract, typeof code === "string" ? code : "upstream_error"),
    message: `${call.driver.key}: ${typeof message === "string" && message !== "" ? message.slice(0, 500) : "it failed"}`,
    ...(typeof retryable === "boolean" ? { retryable } : {}),
    details: {
      exit_code: result.exitCode,
      stderr: tail(result.stderr),
      ...(code === "timeout.unknown-commit" ? { commit: "unknown" } : {}),
    },
  }
}

/** The command, with its output read by the driver's functions. */
export const withAdapters = (call: KindCall, own: OwnFunctions, command: ProgramCommand): ProgramCommand => ({
  ...command,
  read: async (result, signal) => {
    const args = argumentsOf(result, command.format)
    if (own.names.includes("detectExpiry")) {
      const expired = await ask(call, own, "detectExpiry", args, signal)
      if (!expired.ok) return expired
      if (expired.value === true)
        return {
          ok: false,
          code: "auth_required",
          message: `${call.driver.key} is no longer signed in`,
          details: { exit_code: result.exitCode },
          expiry: "expired",
        }
    }
    if (!own.names.includes("parseOutput")) return command.read(result, signal)
    const answer = await ask(call, own, "parseOutput", args, signal)
    return answer.ok ? parsed(call, answer.value, result) : answer
  },
})
