/**
 * What of an upstream's answer reaches the client: its headers, and its body with the secrets taken out.
 *
 * Guarantees: a compressed body is undone before it is searched, in memory that was set aside for it; what comes out of
 * the decoder is worked on in turns, as what went in is. A length that no longer holds stays behind, and so does the
 * length of a body that there never is.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import type { Readable } from "node:stream"
import { pipeline } from "node:stream/promises"
import { crossing } from "../http/hop-by-hop.ts"
import { decodingOf } from "../secrets/decoders.ts"
import type { DecodingRoom } from "../secrets/decoding-room.ts"
import { scrubStream } from "../secrets/scrub.ts"
import type { HeaderPair } from "../secrets/substitute.ts"
import { inTurns, type Turns } from "../connection/turns.ts"
import { pairsOf } from "./headers.ts"

/** Does only the end of the connection tell where this response ends? */
export const isToTheEnd = (answer: IncomingMessage, method: string): boolean =>
  answer.headers["content-length"] === undefined &&
  answer.headers["transfer-encoding"] === undefined &&
  !isBodiless(answer, method)

/** There is nothing to decode, whatever its headers say of an encoding. */
const isBodiless = ({ headers, statusCode }: IncomingMessage, method: string): boolean =>
  method === "HEAD" || statusCode === 204 || statusCode === 304 || headers["content-length"] === "0"

type Decoding = NonNullable<ReturnType<typeof decodingOf>>

/** How the encoding of the body is undone, `none` where there is none; undefined where nothing here does. */
export function decodingFor(answer: IncomingMessage, method: string): Decoding | "none" | undefined {
  const encoding = (answer.headers["content-encoding"] ?? "").trim().toLowerCase()
  return encoding === "" || encoding === "identity" || isBodiless(answer, method) ? "none" : decodingOf(encoding)
}

const ofEncoded: ReadonlySet<string> = new Set(["content-encoding", "content-length"])
const ofBody: ReadonlySet<string> = new Set(["content-length"])
const noHeader: ReadonlySet<string> = new Set()

export function answerHeaders(answer: IncomingMessage, decoding: Decoding | "none"): readonly HeaderPair[] {
  const behind = decoding !== "none" ? ofEncoded : answer.statusCode === 204 ? ofBody : noHeader
  return crossing(pairsOf(answer.rawHeaders)).filter(([name]) => !behind.has(name.toLowerCase()))
}

/** Copies the body; the response is not ended. Rejects when either side breaks off. */
export async function copyBody(
  answer: IncomingMessage,
  response: ServerResponse,
  decoding: Decoding | "none",
  words: { readonly turns: Turns; readonly decoding: DecodingRoom; readonly spellings: readonly Buffer[] },
): Promise<void> {
  const { turns, spellings } = words
  const came = inTurns(answer, turns)
  const scrub = scrubStream(spellings)
  if (decoding === "none") return pipeline(came, scrub, response, { end: false })
  const place = words.decoding.enter(decoding.bytes)
  response.once("close", place.leave)
  try {
    if (!(await place.ready)) throw new Error("the client is gone")
    const decoded = (stream: Readable): AsyncIterable<Buffer> => inTurns(stream, turns)
    await pipeline(came, decoding.create(), decoded, scrub, response, { end: false })
  } finally {
    response.off("close", place.leave)
    place.leave()
  }
}
