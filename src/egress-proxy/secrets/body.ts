/**
 * Looks for placeholders in a request body, through its content encoding.
 *
 * Guarantees: a chunk is judged before `push` resolves, so a caller that forwards it afterwards never forwards a
 * whole placeholder. Bodies in gzip, deflate, br and zstd are decoded only to be looked at (git compresses its
 * requests); the bytes as sent are looked at too. What cannot be looked into is `unscannable`, and is to be refused:
 * another or a nested encoding, data that does not decode, bytes after the end of the compressed data, and more than
 * `maxDecodedBytes` of decoded data. Memory is bounded by the chunk and the decoder's own window.
 * Assumes: one `push` at a time.
 */
import type { Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate, createZstdDecompress, type Gunzip } from "node:zlib"
import { createPlaceholderScanner } from "./scanner.ts"

export type BodyStep =
  | { readonly state: "clean" }
  | { readonly state: "misuse"; readonly placeholder: string }
  | { readonly state: "unscannable"; readonly reason: string }

export interface BodyScanner extends Disposable {
  push(chunk: Buffer): Promise<BodyStep>
  end(): Promise<BodyStep>
  dispose(): void
}

export interface BodyScannerOptions {
  readonly placeholders: readonly string[]
  /** the request's `content-encoding`, if any */
  readonly encoding?: string | undefined
  /** default 256 MiB */
  readonly maxDecodedBytes?: number
}

const decoders: Readonly<Record<string, () => Pick<Gunzip, "on" | "write" | "end" | "destroy" | "bytesWritten">>> = {
  gzip: createGunzip,
  "x-gzip": createGunzip,
  deflate: createInflate,
  br: createBrotliDecompress,
  zstd: createZstdDecompress,
}

/** What undoes a content encoding, if anything here does. */
export const decoderFor = (encoding: string): Transform | undefined =>
  Object.hasOwn(decoders, encoding) ? (decoders[encoding]?.() as unknown as Transform) : undefined

const clean: BodyStep = { state: "clean" }
const trailing: BodyStep = { state: "unscannable", reason: "bytes follow the end of the compressed body" }

export function createBodyScanner(options: BodyScannerOptions): BodyScanner {
  const encoding = (options.encoding ?? "").trim().toLowerCase()
  const asSent = createPlaceholderScanner(options.placeholders)
  const plain = encoding === "" || encoding === "identity" || options.placeholders.length === 0
  const decoder = plain ? undefined : createDecodedScanner(encoding, options)
  let ended: BodyStep | undefined
  let empty = true

  const settle = (step: BodyStep): BodyStep => {
    if (step.state !== "clean") ended = step
    return step
  }
  const dispose = (): void => decoder?.dispose()
  return {
    async push(chunk) {
      if (ended !== undefined) return ended
      empty &&= chunk.length === 0
      const found = asSent.push(chunk)
      if (found !== undefined) return settle({ state: "misuse", placeholder: found })
      return settle(decoder === undefined ? clean : await decoder.push(chunk))
    },
    async end() {
      return ended ?? settle(decoder === undefined || empty ? clean : await decoder.end())
    },
    dispose,
    [Symbol.dispose]: dispose,
  }
}

function createDecodedScanner(
  encoding: string,
  options: BodyScannerOptions,
): Pick<BodyScanner, "push" | "end" | "dispose"> {
  const create = Object.hasOwn(decoders, encoding) ? decoders[encoding] : undefined
  if (create === undefined) {
    const no = { state: "unscannable", reason: "the body's content encoding cannot be looked into" } as const
    return { push: async () => no, end: async () => no, dispose: () => undefined }
  }
  const maxDecodedBytes = options.maxDecodedBytes ?? 256 * 1024 * 1024
  const scanner = createPlaceholderScanner(options.placeholders)
  const decoder = create()
  let verdict: BodyStep = clean
  let sent = 0
  let decoded = 0
  let finished = false
  let wake: (() => void) | undefined
  const stop = (step: BodyStep): void => {
    if (verdict.state === "clean") verdict = step
    decoder.destroy()
    wake?.()
  }
  decoder.on("data", (chunk: Buffer) => {
    decoded += chunk.length
    const found = verdict.state === "clean" ? scanner.push(chunk) : undefined
    if (found !== undefined) stop({ state: "misuse", placeholder: found })
    else if (decoded > maxDecodedBytes) stop({ state: "unscannable", reason: "the body decodes to more than the cap" })
  })
  decoder.on("end", () => {
    finished = true
    wake?.()
  })
  decoder.on("error", () => stop({ state: "unscannable", reason: "the body does not decode as its content encoding" }))
  decoder.on("close", () => wake?.())

  const pass = async (start: (done: () => void) => void): Promise<void> => {
    if (verdict.state !== "clean") return
    await new Promise<void>((resolve) => {
      wake = resolve
      start(resolve)
    })
    wake = undefined
  }
  return {
    async push(chunk) {
      sent += chunk.length
      if (finished && verdict.state === "clean") verdict = trailing
      await pass((done) => decoder.write(chunk, () => done()))
      return verdict
    },
    async end() {
      if (!finished) {
        // Wakes on `end`, `error` or `close`, whichever tells that the decoder has nothing more to say.
        await pass(() => decoder.end())
        if (!finished && verdict.state === "clean") {
          verdict = { state: "unscannable", reason: "the compressed body is cut off" }
        }
      }
      if (verdict.state === "clean" && decoder.bytesWritten !== sent) verdict = trailing
      decoder.destroy()
      return verdict
    },
    dispose: () => decoder.destroy(),
  }
}
