/**
 * Looks for placeholders in a request body, through its content encoding.
 *
 * Guarantees: a chunk is judged before `push` resolves, so a caller that forwards it afterwards never forwards a
 * whole placeholder. Bodies in gzip, deflate, br and zstd are decoded only to be looked at (git compresses its
 * requests); the bytes as sent are looked at too. What cannot be looked into is `unscannable`, and is to be refused:
 * another or a nested encoding, data that does not decode, bytes after the end of the compressed data, and more than
 * `maxDecodedBytes` of decoded data. Memory is bounded by the chunk and the decoder's own window, which is taken from
 * the room that is handed in from the first byte to the last. What comes out of a decoder, which may be a thousand times
 * what went in, is looked at in turns like everything else.
 * Assumes: one `push` at a time; `dispose` when it is over, or the client is gone: until then it may wait for memory.
 */
import type { Transform } from "node:stream"
import { attempt } from "../connection/boundary.ts"
import type { Turns } from "../connection/turns.ts"
import { decodingOf } from "./decoders.ts"
import type { DecodingPlace, DecodingRoom } from "./decoding-room.ts"
import { createPlaceholderScanner } from "./scanner.ts"

export type BodyStep =
  | { readonly state: "clean" }
  | { readonly state: "misuse"; readonly placeholder: string }
  | { readonly state: "unscannable"; readonly reason: string }
  /** disposed before there was memory to look at it: nothing is known, and nobody is there to be told */
  | { readonly state: "abandoned" }

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
  readonly turns: Turns
  readonly room: DecodingRoom
}

const clean: BodyStep = { state: "clean" }
const abandoned: BodyStep = { state: "abandoned" }
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
  const decoding = decodingOf(encoding)
  if (decoding === undefined) {
    const no = { state: "unscannable", reason: "the body's content encoding cannot be looked into" } as const
    return { push: async () => no, end: async () => no, dispose: () => undefined }
  }
  const maxDecodedBytes = options.maxDecodedBytes ?? 256 * 1024 * 1024
  const scanner = createPlaceholderScanner(options.placeholders)
  let decoder: Decoder | undefined
  let place: DecodingPlace | undefined
  let verdict: BodyStep = clean
  let sent = 0
  let decoded = 0
  let disposed = false

  const look = (chunk: Buffer): void => {
    decoded += chunk.length
    const found = scanner.push(chunk)
    if (found !== undefined) verdict = { state: "misuse", placeholder: found }
    else if (decoded > maxDecodedBytes)
      verdict = { state: "unscannable", reason: "the body decodes to more than the cap" }
  }
  const dispose = (): void => {
    disposed = true
    decoder?.destroy()
    place?.leave()
  }
  const begun = async (): Promise<Decoder | undefined> => {
    if (disposed || decoder !== undefined) return decoder
    place = options.room.enter(decoding.bytes)
    if (!(await place.ready)) return undefined
    decoder = new Decoder(decoding.create(), options.turns, (chunk) => {
      look(chunk)
      return verdict.state === "clean"
    })
    return decoder
  }
  const settled = (state: DecoderState): BodyStep => {
    if (verdict.state === "clean" && state === "broken")
      verdict = { state: "unscannable", reason: "the body does not decode as its content encoding" }
    if (verdict.state !== "clean") dispose()
    return verdict
  }
  return {
    async push(chunk) {
      if (chunk.length === 0) return verdict
      const open = await begun()
      if (open === undefined) return abandoned
      sent += chunk.length
      if (open.state === "over" && verdict.state === "clean") verdict = trailing
      return verdict.state === "clean" ? settled(await open.write(chunk)) : settled(open.state)
    },
    async end() {
      const open = await begun()
      if (open === undefined) return abandoned
      const step = settled(await open.end())
      if (step.state === "clean" && open.state !== "over")
        verdict = { state: "unscannable", reason: "the compressed body is cut off" }
      if (verdict.state === "clean" && open.bytesWritten !== sent) verdict = trailing
      dispose()
      return verdict
    },
    dispose,
  }
}

type DecoderState = "open" | "over" | "broken"

/** One decoder, whose output is handed on a piece at a time, each in its turn; what says no to one ends it. */
class Decoder {
  state: DecoderState = "open"
  readonly #stream: Transform
  #wake: (() => void) | undefined
  #written = false
  #looking = false

  constructor(stream: Transform, turns: Turns, passes: (chunk: Buffer) => boolean) {
    this.#stream = stream
    stream.on("data", (chunk: Buffer) => {
      stream.pause()
      this.#looking = true
      void turns.next(chunk.length).then(() => {
        this.#looking = false
        attempt(
          () => void (this.state !== "broken" && !passes(chunk) && this.#break()),
          () => this.#break(),
        )
        this.#settle()
        stream.resume()
      })
    })
    stream.on("end", () => {
      if (this.state === "open") this.state = "over"
      this.#wake?.()
    })
    stream.on("error", () => this.#break())
    stream.on("close", () => {
      if (this.state === "open") this.state = "broken"
      this.#wake?.()
    })
  }

  get bytesWritten(): number {
    return (this.#stream as Transform & { readonly bytesWritten: number }).bytesWritten
  }

  /** Resolves when all that these bytes decode to was looked at. */
  write(chunk: Buffer): Promise<DecoderState> {
    return this.#until(() => {
      this.#written = false
      this.#stream.write(chunk, () => {
        this.#written = true
        this.#settle()
      })
    })
  }
  /** Resolves when there is nothing more to come: whether it was the end can be seen by the state. */
  end(): Promise<DecoderState> {
    return this.#until(() => {
      this.#written = false
      this.#stream.end()
    })
  }
  destroy(): void {
    this.#stream.destroy()
  }

  async #until(start: () => void): Promise<DecoderState> {
    if (this.state !== "open") return this.state
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      start()
    })
    this.#wake = undefined
    return this.state
  }
  #settle(): void {
    if (this.#written && !this.#looking && this.#stream.readableLength === 0) this.#wake?.()
  }
  #break(): void {
    this.state = "broken"
    this.#stream.destroy()
    this.#wake?.()
  }
}
