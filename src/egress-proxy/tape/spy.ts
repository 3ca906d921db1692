/**
 * Hears a request of node:http and its answer without standing in their way.
 *
 * Guarantees: what passes is the same as without it, in the same turns; an answer that breaks off is no exchange.
 */
import type { ClientRequest, IncomingMessage } from "node:http"
import type { Readable } from "node:stream"
import type { Take, Tape, TapeHeader, TapeRequest } from "./words.ts"

const pairsOf = (raw: readonly string[]): readonly TapeHeader[] =>
  raw.flatMap((name, at): readonly TapeHeader[] => (at % 2 === 0 ? [[name, raw[at + 1] ?? ""]] : []))

/** The bytes of a stream as they are put into it, and its end. */
const hear = (stream: Readable, take: Take, isWhole: () => boolean): void => {
  const push = stream.push.bind(stream)
  stream.push = (chunk: unknown, encoding?: BufferEncoding): boolean => {
    if (chunk === null) {
      if (isWhole()) take.end()
    } else if (Buffer.isBuffer(chunk)) take.came(chunk)
    return push(chunk, encoding)
  }
}

const bytesOf = (chunk: unknown): Buffer | undefined =>
  Buffer.isBuffer(chunk) ? chunk : typeof chunk === "string" ? Buffer.from(chunk) : undefined

export const spyOn = (tape: Tape | undefined, client: ClientRequest, request: () => TapeRequest): void => {
  if (tape?.mode !== "record") return
  const take = tape.take(request())
  const [write, end] = [client.write.bind(client), client.end.bind(client)]
  const note = (chunk: unknown): void => {
    const bytes = bytesOf(chunk)
    if (bytes !== undefined) take.sent(bytes)
  }
  client.write = ((chunk: unknown, ...more: unknown[]) => {
    note(chunk)
    return (write as (...given: unknown[]) => boolean)(chunk, ...more)
  }) as typeof client.write
  client.end = ((chunk?: unknown, ...more: unknown[]) => {
    client.write = write
    note(chunk)
    return (end as (...given: unknown[]) => ClientRequest)(chunk, ...more)
  }) as typeof client.end
  client.prependListener("response", (answer: IncomingMessage) => {
    take.answered(answer.statusCode ?? 0, answer.statusMessage ?? "", pairsOf(answer.rawHeaders))
    hear(answer, take, () => answer.complete)
  })
}
