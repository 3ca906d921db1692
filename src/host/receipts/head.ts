/**
 * The signed head pointer: which entry the log ends with.
 *
 * Guarantees: written twice an append. Before it (`appending`, with the entry the log stood at), and after it
 * (`complete`). So a log cut back after the fact disagrees with a complete head, while a writer killed between the
 * two leaves a head that says so. Put in place by exchanging two files, so a reader sees one head or the other, never
 * half of one; both have their blocks already, so that the disk is not waited for, which a rename over a file does.
 * Does not: fsync; a power cut may leave a head older than the log by what the kernel had not written yet, which the
 * next writer records in the log.
 */
import {
  closeSync,
  constants,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs"
import { jcs } from "../../manifest/values/digest.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { AT_FDCWD, RENAME_EXCHANGE, renameat2 } from "../../linux/files.ts"
import { SyscallError } from "../../linux/libc.ts"
import { type PublishedKey, type Signer, verifySignature } from "./keys.ts"

interface HeadPointer {
  readonly seq: number
  readonly hash: string
  /** bytes of the log up to and with this entry */
  readonly size: number
  readonly state: "appending" | "complete"
  /** where the log stood before, while `appending` */
  readonly before?: { readonly seq: number; readonly hash: string; readonly size: number }
  /** hashes of the entries between the two, where several are appended at once */
  readonly between?: readonly string[]
}

/** Is this where a writer that was stopped in the middle of what the head says left the log? Pure. */
export const isOnTheWay = (
  { state, before, between = [] }: HeadPointer,
  end: { readonly seq: number; readonly hash: string },
): boolean => {
  if (state !== "appending" || before === undefined) return false
  return [before.hash, ...between][end.seq - before.seq] === end.hash
}

export type HeadRead =
  | { readonly found: false }
  | { readonly found: true; readonly signed: false; readonly message: string }
  | { readonly found: true; readonly signed: true; readonly head: HeadPointer; readonly keyId: string }

const payload = (head: HeadPointer): Uint8Array => Buffer.from(jcs(head as unknown as JsonObject))

/** Every head has this length, so that writing one never changes that of its file. */
const HEAD_BYTES = 4096

/** Over what the file holds; it is waited for only where its length is new, and with it the blocks. */
const writeInPlace = (file: string, bytes: Uint8Array): void => {
  const fd = openSync(file, constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o600)
  try {
    const before = fstatSync(fd).size
    if (writeSync(fd, bytes) !== bytes.length) throw Object.assign(new Error("short write"), { code: "ENOSPC" })
    if (before === bytes.length) return
    ftruncateSync(fd, bytes.length)
    fdatasyncSync(fd)
  } finally {
    closeSync(fd)
  }
}

export const writeHead = (file: string, head: HeadPointer, signer: Signer): void => {
  const text = JSON.stringify({
    head,
    signature: { alg: "Ed25519", publicKeyRef: signer.keyId, value: signer.sign(payload(head)) },
  })
  const other = `${file}.new`
  writeInPlace(other, Buffer.from(`${text.padEnd(HEAD_BYTES - 1)}\n`))
  try {
    renameat2(AT_FDCWD, other, AT_FDCWD, file, RENAME_EXCHANGE)
  } catch (error) {
    // The first head, or a file system that exchanges nothing.
    if (!(error instanceof SyscallError)) throw error
    renameSync(other, file)
  }
}

const isPlace = (value: unknown): value is { seq: number; hash: string; size: number } => {
  if (typeof value !== "object" || value === null) return false
  const { seq, hash, size } = value as Record<string, unknown>
  return Number.isSafeInteger(seq) && typeof hash === "string" && Number.isSafeInteger(size)
}

const isTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one: unknown) => typeof one === "string")

export const readHead = (file: string, keys: readonly PublishedKey[]): HeadRead => {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (["ENOENT", "ENOTDIR"].includes((error as NodeJS.ErrnoException).code ?? "")) return { found: false }
    throw error
  }
  const unsigned = (message: string): HeadRead => ({ found: true, signed: false, message })
  try {
    const { head, signature } = JSON.parse(text) as {
      head: HeadPointer
      signature: { publicKeyRef: string; value: string }
    }
    const { before, between = [] } = head
    if (!isPlace(head) || (before !== undefined && !isPlace(before)) || !isTexts(between))
      return unsigned("the head pointer is malformed")
    const key = keys.find((candidate) => candidate.id === signature.publicKeyRef)
    if (key === undefined)
      return unsigned(`the head pointer is signed with a key that is not published (${signature.publicKeyRef})`)
    if (!verifySignature(key, payload(head), signature.value))
      return unsigned("the head pointer's signature does not fit")
    return { found: true, signed: true, head, keyId: key.id }
  } catch {
    return unsigned("the head pointer is malformed")
  }
}
