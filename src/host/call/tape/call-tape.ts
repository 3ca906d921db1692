/**
 * A call's recording: read before anything runs, or written once its run was judged and before it is settled.
 *
 * Guarantees: a file that is no recording ends the call with nothing run. What could not be recorded or answered fails the
 * call by name, whatever the tool made of it, and commits nothing; then nothing is written either. A recording lies there
 * whole or not at all, readable by its owner alone. Each attempt begins it anew.
 */
import { createHash } from "node:crypto"
import { closeSync, constants, fstatSync, openSync, readFileSync } from "node:fs"
import { resolve } from "node:path"
import { parseTape, tapeText } from "../../../egress-proxy/tape/file.ts"
import { tapeBytes } from "../../../egress-proxy/tape/limits.ts"
import { createPlayer } from "../../../egress-proxy/tape/player.ts"
import { createRecorder } from "../../../egress-proxy/tape/recorder.ts"
import type { Tape, TapeExchange } from "../../../egress-proxy/tape/words.ts"
import type { JsonObject } from "../../../manifest/types.ts"
import { writeWhole } from "../../data/write-whole.ts"
import type { Failure } from "../../failure.ts"
import type { Judged } from "../steps.ts"

export interface CallTape {
  readonly tape: Tape
  /** For one attempt, with the values of secrets that it is given. */
  begin(secrets: readonly string[]): void
  /** What is wrong with it, or what it came to, in words. */
  finish(): { readonly ok: true; readonly note: string } | { readonly ok: false; readonly faults: readonly string[] }
  /** for the receipt */
  facts(): JsonObject
}

const digestOf = (text: string): string => `sha256:${createHash("sha256").update(text).digest("hex")}`
const plural = (count: number): string => `${count} exchange${count === 1 ? "" : "s"}`

const recording = (file: string): CallTape => {
  let recorder = createRecorder([])
  let written: JsonObject = {}
  return {
    get tape() {
      return recorder
    },
    begin: (secrets) => {
      recorder = createRecorder(secrets)
    },
    finish: () => {
      const exchanges = recorder.exchanges()
      const faults = recorder.faults()
      if (faults.length > 0) return { ok: false, faults }
      const text = tapeText(exchanges)
      try {
        writeWhole(file, text, 0o600)
      } catch (error) {
        return { ok: false, faults: [`${file} cannot be written: ${error instanceof Error ? error.message : ""}`] }
      }
      written = { digest: digestOf(text), exchanges: exchanges.length }
      return { ok: true, note: `recorded: ${plural(exchanges.length)} to ${file}` }
    },
    facts: () => ({ mode: "record", ...written }),
  }
}

const replaying = (file: string, text: string, exchanges: readonly TapeExchange[]): CallTape => {
  let player = createPlayer(exchanges, [])
  const digest = digestOf(text)
  return {
    get tape() {
      return player
    },
    begin: (secrets) => {
      player = createPlayer(exchanges, secrets)
    },
    finish: () => {
      const faults = player.faults()
      if (faults.length > 0) return { ok: false, faults }
      const { used, all } = player.used()
      return { ok: true, note: `replayed: ${used} of ${plural(all)} of ${file}, the network closed` }
    },
    facts: () => ({ mode: "replay", digest, exchanges: exchanges.length, used: player.used().used }),
  }
}

type Opened = { readonly ok: true; readonly value: CallTape } | Failure

const unusable = (message: string): Failure => ({
  ok: false,
  code: "input_invalid",
  message,
  hint: "pass a file that --record wrote, or record it again",
  details: { field: "replay" },
})

export const tapeOf = (asked: { record?: string | undefined; replay?: string | undefined }): Opened | undefined => {
  const { record, replay } = asked
  if (record !== undefined && replay !== undefined)
    return { ...unusable("a call is recorded or replayed, not both"), hint: "say one of the two" }
  if (record !== undefined) return { ok: true, value: recording(resolve(record)) }
  if (replay === undefined) return undefined
  const file = resolve(replay)
  let fd: number | undefined
  try {
    // Once: what was looked at is what is read, and a pipe is not waited for.
    fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK)
    const facts = fstatSync(fd)
    if (!facts.isFile() || facts.size > 2 * tapeBytes)
      return unusable(`the recording ${file} is no file of at most ${2 * tapeBytes} bytes`)
    const text = readFileSync(fd, "utf8")
    const read = parseTape(text)
    if (!read.ok) return unusable(`the recording ${file} cannot be replayed: ${read.message}`)
    return { ok: true, value: replaying(file, text, read.value) }
  } catch (error) {
    return unusable(`the recording ${file} cannot be read: ${error instanceof Error ? error.message : ""}`)
  } finally {
    if (fd !== undefined) closeSync(fd)
  }
}

const failed = (mode: Tape["mode"], faults: readonly string[]): Failure => ({
  ok: false,
  code: "upstream_error",
  message:
    mode === "replay"
      ? `replay: ${faults[0]}; nothing was committed`
      : `recording: ${faults[0]}; nothing was recorded or committed`,
  hint:
    mode === "replay"
      ? "record it again with --record; where the program sends something else each time (clock, chance), docs/replay.md tells what to do"
      : "run it without --record, or mend what is named",
  retryable: false,
  details: { tape: mode, faults: [...faults] },
})

/** What ran with a recording stands only where that is whole. */
export const onTape = (judged: Judged): Judged => {
  const { tape, verdict } = judged
  if (tape === undefined) return judged
  const finished = tape.finish()
  if (!finished.ok) {
    const { ifApproved: _none, ...rest } = judged
    return { ...rest, verdict: failed(tape.tape.mode, finished.faults) }
  }
  const { note } = finished
  return {
    ...judged,
    ...(verdict.ok ? { verdict: { ...verdict, notes: [...verdict.notes, note] } } : {}),
    ...(judged.ifApproved === undefined
      ? {}
      : { ifApproved: { ...judged.ifApproved, notes: [...judged.ifApproved.notes, note] } }),
  }
}
