/** What a program wrote, as text for people: a character that a cap cut in two is left out, and a cut is told. */
import type { Captured } from "../../sandbox/backend.ts"
import { errorTailBytes } from "./limits.ts"

export const truncationNote = (stream: Captured): string =>
  `output cut: ${stream.bytes.length} of ${stream.total} bytes kept (limit: output)`

/** Text of a capture; a character that the cap cut in two is left out. */
export const decode = (stream: Captured): { readonly text: string; readonly valid: boolean } => {
  const options = { stream: stream.truncated }
  try {
    return {
      text: new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(stream.bytes, options),
      valid: true,
    }
  } catch {
    return { text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(stream.bytes, options), valid: false }
  }
}

/** The end of a stream as text: at most `errorTailBytes`, from a whole character on. */
export const tail = (stream: Captured): string => {
  let start = Math.max(0, stream.bytes.length - errorTailBytes)
  while (start > 0 && start < stream.bytes.length && ((stream.bytes[start] ?? 0) & 0xc0) === 0x80) start++
  const { text } = decode({ ...stream, bytes: stream.bytes.subarray(start) })
  const cut = start > 0 ? `[caisson: the first ${start} bytes are left out]\n` : ""
  return stream.truncated ? `${cut}${text}\n[caisson: ${truncationNote(stream)}]` : `${cut}${text}`
}
