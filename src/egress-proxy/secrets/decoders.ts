/**
 * What undoes the encodings of bodies, and how much memory each takes.
 *
 * Guarantees: a decoder takes no more than `bytes`, whatever the body asks for: a few bytes can name a window of many
 * megabytes, and fill it. A zstd body that wants more than the 8 MiB which its standard allows on the web (RFC 9659) does
 * not decode.
 */
import type { Transform } from "node:stream"
import { constants, createBrotliDecompress, createGunzip, createInflate, createZstdDecompress } from "node:zlib"

interface Decoding {
  readonly create: () => Transform
  /** its window and what else it has, at most */
  readonly bytes: number
}

const kib = 1_024
const zstdWindowLog = 23
const zlib = (create: () => Transform): Decoding => ({ create, bytes: 64 * kib })

const decodings: Readonly<Record<string, Decoding>> = {
  gzip: zlib(createGunzip),
  "x-gzip": zlib(createGunzip),
  deflate: zlib(createInflate),
  br: { create: createBrotliDecompress, bytes: 17_408 * kib },
  zstd: {
    create: () => createZstdDecompress({ params: { [constants.ZSTD_d_windowLogMax]: zstdWindowLog } }),
    bytes: 9_216 * kib,
  },
}

/** How this content encoding is undone, if anything here does. */
export const decodingOf = (encoding: string): Decoding | undefined =>
  Object.hasOwn(decodings, encoding) ? decodings[encoding] : undefined
