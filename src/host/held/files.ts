/**
 * Where held calls lie in the data folder: `held/<call>` with the layer, its description and what the call answered.
 *
 * Guarantees: folders of this user's alone. One process at a time works on a held call: the lock is the kernel's and dies
 * with its holder. What was written of a call is read back as it was, or not at all.
 */
import { createHash } from "node:crypto"
import { closeSync, fsyncSync, mkdirSync, openSync, readdirSync, readFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { heldFolder } from "../../data-folder/paths.ts"
import type { JsonValue } from "../../manifest/types.ts"
import { takeLockIn } from "../../sandbox/effects/index.ts"
import { removeEntry } from "../../sandbox/layers/remove.ts"
import type { ReportedDenial, ReportedEffect } from "../types.ts"

/** What the call would have answered, and what a person is shown. */
export interface HeldAnswer {
  readonly value: JsonValue
  readonly notes: readonly string[]
  readonly effects: readonly ReportedEffect[]
  readonly denied: readonly ReportedDenial[]
  readonly mutates: readonly string[]
}

const ANSWER = "call.json"
const CALL = /^[0-9A-Z]{26}$/

export const isCallId = (text: string): boolean => CALL.test(text)
export const folderOf = (data: string, call: string): string => join(heldFolder(data), call)

const sha256 = (bytes: Uint8Array): string => `sha256:${createHash("sha256").update(bytes).digest("hex")}`

/** Undefined while another process, or another part of this one, works on that call. */
export const lockHeld = (data: string, call: string): Disposable | undefined => takeLockIn(heldFolder(data), [call])

export const makeHeldFolder = (data: string, call: string): string => {
  mkdirSync(heldFolder(data), { recursive: true, mode: 0o700 })
  const folder = folderOf(data, call)
  mkdirSync(folder, { mode: 0o700 })
  return folder
}

/** Does nothing where there is none. */
export const removeHeldFolder = (data: string, call: string): Promise<void> => removeEntry(heldFolder(data), call)

/** Calls that something lies there of. */
export const heldOnDisk = (data: string): readonly string[] => {
  try {
    return [...new Set(readdirSync(heldFolder(data)).map((name) => name.replace(/^lock-/, "")))].filter(isCallId)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return []
    throw error
  }
}

/** On disk when this returns; answers its digest and its size. */
export const writeAnswer = (
  folder: string,
  answer: HeldAnswer,
): { readonly digest: string; readonly bytes: number } => {
  const bytes = Buffer.from(JSON.stringify(answer))
  const fd = openSync(join(folder, ANSWER), "wx", 0o600)
  try {
    for (let at = 0; at < bytes.length; ) at += writeSync(fd, bytes, at)
    fsyncSync(fd)
  } finally {
    closeSync(fd)
  }
  return { digest: sha256(bytes), bytes: bytes.length }
}

/** Undefined where it is gone or not what was written. */
export const readAnswer = (data: string, call: string, digest: string): HeldAnswer | undefined => {
  let bytes: Buffer
  try {
    bytes = readFileSync(join(folderOf(data, call), ANSWER))
  } catch {
    return undefined
  }
  return sha256(bytes) === digest ? (JSON.parse(bytes.toString("utf8")) as HeldAnswer) : undefined
}
