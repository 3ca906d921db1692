/**
 * SHA-256 of file contents and symlink targets, as `sha256:<hex>`.
 *
 * Guarantees: memory bounded by one chunk; `breathe` is awaited between the chunks of large files.
 * Assumes: the descriptor is a regular file that nobody writes to.
 */
import crypto, { createHash } from "node:crypto"
import { readSync } from "node:fs"

const CHUNK = 1 << 20

export const digestBytes = (bytes: Uint8Array): string => `sha256:${crypto.hash("sha256", bytes, "hex")}`

export const digestFd = async (fd: number, size: number, breathe: () => Promise<void> | undefined): Promise<string> => {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK, size + 1))
  const first = readSync(fd, buffer, 0, buffer.length, 0)
  if (first < buffer.length) return digestBytes(buffer.subarray(0, first))
  const sha = createHash("sha256").update(buffer)
  for (let at = first; ; ) {
    const read = readSync(fd, buffer, 0, buffer.length, at)
    if (read === 0) return `sha256:${sha.digest("hex")}`
    sha.update(buffer.subarray(0, read))
    at += read
    await breathe()
  }
}
