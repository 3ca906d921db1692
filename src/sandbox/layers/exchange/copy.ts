/**
 * Bytes from one open file to another, or nowhere, with their digest.
 *
 * Guarantees: in turns with other work; never more than it may; and what was copied is what the file held at one time: one
 * that was written to meanwhile is not passed off as either.
 */
import { createHash } from "node:crypto"
import { type BigIntStats, fstatSync, read, write } from "node:fs"
import { promisify } from "node:util"
import { HOSTED } from "../limits.ts"

const readAt = promisify(read)
const writeAt = promisify(write)

export type Copied =
  | { readonly ok: true; readonly size: number; readonly digest: string }
  | { readonly ok: false; readonly fault: "too_large" | "changed" }

const isSame = (a: BigIntStats, b: BigIntStats): boolean =>
  a.size === b.size && a.mtimeNs === b.mtimeNs && a.ctimeNs === b.ctimeNs

/** `most`: bytes. Both descriptors stay the caller's; without `to` it is only read. */
export const copyBytes = async (from: number, to: number | undefined, most: number): Promise<Copied> => {
  const before = fstatSync(from, { bigint: true })
  if (before.size > BigInt(most)) return { ok: false, fault: "too_large" }
  const hash = createHash("sha256")
  const buffer = Buffer.allocUnsafe(HOSTED.chunkBytes)
  let at = 0
  for (;;) {
    const { bytesRead } = await readAt(from, buffer, 0, buffer.length, at)
    if (bytesRead === 0) break
    if (at + bytesRead > most) return { ok: false, fault: "too_large" }
    const part = buffer.subarray(0, bytesRead)
    hash.update(part)
    for (let done = 0; to !== undefined && done < part.length; ) {
      const { bytesWritten } = await writeAt(to, part, done, part.length - done, at + done)
      done += bytesWritten
    }
    at += bytesRead
  }
  if (!isSame(before, fstatSync(from, { bigint: true }))) return { ok: false, fault: "changed" }
  return { ok: true, size: at, digest: `sha256:${hash.digest("hex")}` }
}
