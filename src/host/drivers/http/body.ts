/**
 * The bytes of an answer, undone of their encoding, without secrets, and no more than may be kept.
 *
 * Guarantees: what is counted against the limit is what comes out of the decoder, so that a small answer cannot unfold
 * into a large one; values of secrets that the service sends back are overwritten before anybody reads them.
 */
import { pipeline, type Readable, type Transform } from "node:stream"
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib"
import { scrubStream } from "../../../egress-proxy/secrets/scrub.ts"
import type { Answer } from "../kind.ts"
import { brokenOff, type HttpAnswer } from "./exchange.ts"

const decoders: Readonly<Record<string, () => Transform>> = {
  gzip: () => createGunzip(),
  "x-gzip": () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
}

const encodingsOf = ({ headers }: HttpAnswer): readonly string[] =>
  [headers["content-encoding"] ?? []]
    .flat()
    .flatMap((value) => value.split(","))
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== "" && name !== "identity")

/** The answer's bytes as they are to be read. */
export const readableOf = (answer: HttpAnswer, spellings: readonly Buffer[]): Answer<Readable> => {
  const names = encodingsOf(answer)
  const [name] = names
  const decode = name === undefined ? undefined : decoders[name]
  if (names.length > 1 || (name !== undefined && decode === undefined))
    return brokenOff("the answer is encoded in a way that was not asked for", "bad_encoding", true)
  const steps = [
    ...(decode === undefined ? [] : [decode()]),
    ...(spellings.length === 0 ? [] : [scrubStream(spellings)]),
  ]
  const last = steps.at(-1)
  if (last === undefined) return { ok: true, value: answer.body }
  // An end before its time ends what comes after it, as an error of that.
  pipeline([answer.body, ...steps], () => undefined)
  return { ok: true, value: last }
}

type Read = { readonly ok: true; readonly bytes: number } | { readonly ok: false; readonly why: "limit" | "broken" }

/** Hands on what comes until `take` says that it is enough, or there is more than `most`. */
export const readUpTo = async (stream: Readable, most: number, take: (chunk: Buffer) => boolean): Promise<Read> => {
  let bytes = 0
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      bytes += chunk.length
      if (bytes > most) return { ok: false, why: "limit" }
      if (!take(chunk)) break
    }
    return { ok: true, bytes }
  } catch {
    return { ok: false, why: "broken" }
  } finally {
    stream.destroy()
  }
}
