/** Headers that concern one connection, or the way to a host, and never cross the proxy, whoever sent them. */
export const hopByHop: readonly string[] = [
  "connection",
  "keep-alive",
  "te",
  "trailer",
  "trailers",
  "transfer-encoding",
  "upgrade",
  "via",
  "http2-settings",
  "alt-svc",
]
