/** What a function of the host is given, and how it says that it cannot. */
import type { JsonObject, JsonValue } from "../../../manifest/types.ts"
import type { HostedFiles } from "../../../sandbox/layers/hosted/layer.ts"
import type { Failure } from "../../failure.ts"
import type { Answer, Desk } from "../kind.ts"

/** All that it acts with. */
interface Bench {
  readonly files: HostedFiles
  /** bytes of the answer that may be kept */
  readonly outputBytes: number
  readonly signal: AbortSignal
}

interface Said {
  readonly value: JsonValue
  readonly notes?: readonly string[]
}
export type HostFunction = (input: JsonObject, bench: Bench) => Promise<Answer<Said>>

/** What it found under the input's path is not what it needs. */
type Fault = Extract<Awaited<ReturnType<HostedFiles["stat"]>>, { ok: false }>["fault"]

const WORDS: Readonly<Record<Fault, string>> = {
  absent: "is not there",
  hidden: "is not the driver's to see",
  outside: "leads out of the workspace",
  not_a_file: "is not a file",
  not_a_folder: "is not a folder",
  forbidden: "is closed to the owner of the workspace",
  changed: "was swapped for something else meanwhile",
  too_large: "is larger than a call may answer with",
  too_many: "has more entries than are listed",
  full: "would take more than the call may write",
  ended: "was asked for when the call was over",
}

/** The path is the caller's own word, and the one thing that tells which of several it was. */
export const unusable = (fault: Fault, path: string): Failure =>
  fault === "too_large" || fault === "too_many" || fault === "full"
    ? {
        ok: false,
        code: "limit_exceeded",
        message: `\`${path}\` ${WORDS[fault]}`,
        details: { limit: fault === "full" ? "disk" : "output" },
      }
    : {
        ok: false,
        code: `caisson:${fault}`,
        message: `\`${path}\` ${WORDS[fault]}`,
        hint: "look at what is there with files.list",
        details: { fault },
      }

export const invalid = (message: string, fix: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message,
  hint: fix,
  details: {},
})

export const benchOf = ({ layer, outputBytes, signal }: Desk): Bench => ({ files: layer, outputBytes, signal })

/** A contract of the same name may be another's: nothing is taken to be what it should be. */
export const textIn = (input: JsonObject, name: string): string | undefined => {
  const value = input[name]
  return typeof value === "string" ? value : undefined
}
export const isOn = (input: JsonObject, name: string): boolean => input[name] === true

export const missing = (name: string): Failure => invalid(`\`${name}\` is missing`, `give \`${name}\` as text`)
