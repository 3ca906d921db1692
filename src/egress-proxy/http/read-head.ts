/**
 * The next request head from a connection, within its byte and time caps.
 *
 * Guarantees: settles within `silentMs` of silence or `headMs` of dribble, whatever the client does; bytes after the
 * head stay in the source.
 */
import type { ByteSource } from "../connection/byte-source.ts"
import type { ProxyLimits } from "../limits.ts"
import { createHeadScanner } from "./head.ts"

type HeadRead =
  | { readonly state: "head"; readonly head: Buffer }
  /** the client is done, or said nothing */
  | { readonly state: "gone" }
  | { readonly state: "bad"; readonly code: "bad_request_line" | "head_too_large" | "head_timeout" }

export async function readHead(source: ByteSource, limits: ProxyLimits): Promise<HeadRead> {
  const scanner = createHeadScanner(limits.headBytes)
  let begun = false
  let deadline = 0
  for (;;) {
    const wait = !begun ? limits.silentMs : deadline - performance.now()
    const chunk = wait > 0 ? await source.read(wait) : "timeout"
    if (chunk === "end") return begun ? { state: "bad", code: "bad_request_line" } : { state: "gone" }
    if (chunk === "timeout") return begun ? { state: "bad", code: "head_timeout" } : { state: "gone" }
    if (!begun) deadline = performance.now() + limits.headMs
    begun = true
    const scan = scanner.push(chunk)
    if (scan.state === "bad") return scan
    if (scan.state === "more") continue
    source.unread(scan.rest)
    return { state: "head", head: scan.head }
  }
}
