/**
 * The HTTP parser of an intercepted connection: what it takes, what it calls the rest, and what a head costs.
 *
 * Guarantees: HTTP/1.1 in its strict form, heads and silences bounded; of a head with more lines than are kept it is seen
 * that there are more. Does not: judge a request, or listen anywhere; whoever has a connection hands it in.
 */
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { ReasonCode } from "../policy/reasons.ts"
import { membersOf, pairsOf } from "./headers.ts"

/** what a request, and each line of its head, takes in memory beside the text */
const requestBytes = 1_024
const headerBytes = 64

/** what a head that was read comes to in memory, about: most of it where its lines are short */
export const sizeOf = ({ url = "", rawHeaders }: IncomingMessage): number =>
  rawHeaders.reduce((sum, text) => sum + text.length, url.length + requestBytes + (rawHeaders.length / 2) * headerBytes)

/** what the HTTP parser objects to; anything else it says is about a header line */
const REASONS: Readonly<Record<string, ReasonCode>> = {
  HPE_HEADER_OVERFLOW: "head_too_large",
  HPE_INVALID_VERSION: "http_version",
  HPE_INVALID_METHOD: "bad_request_line",
  HPE_INVALID_URL: "bad_request_line",
  HPE_INVALID_CONSTANT: "bad_request_line",
  HPE_INVALID_CONTENT_LENGTH: "bad_framing",
  HPE_UNEXPECTED_CONTENT_LENGTH: "bad_framing",
  HPE_INVALID_TRANSFER_ENCODING: "bad_framing",
  HPE_INVALID_CHUNK_SIZE: "bad_chunk",
}

export const reasonOf = ({ code = "" }: NodeJS.ErrnoException): ReasonCode => REASONS[code] ?? "bad_header"

export interface ServerLimits {
  /** bytes of a request or response head */
  readonly headBytes: number
  /** header lines of a request → `head_too_large` */
  readonly headerLines: number
  /** no byte either way */
  readonly idleMs: number
}

export function strictServer(limits: ServerLimits): Server {
  const server = createServer({
    insecureHTTPParser: false,
    requireHostHeader: false,
    maxHeaderSize: limits.headBytes,
    // Any other offer (HTTP/2 without TLS) is left out, and the request goes on as one.
    shouldUpgradeCallback: ({ rawHeaders }) => membersOf(pairsOf(rawHeaders), "upgrade").includes("websocket"),
  })
  // One more than may pass, by which it is seen that there are too many; what the parser does beyond is its own affair.
  server.maxHeadersCount = limits.headerLines + 1
  // The upstream's silence is found first, so that the client gets an answer and not a closed connection.
  server.timeout = 2 * limits.idleMs
  server.keepAliveTimeout = limits.idleMs
  return server
}
