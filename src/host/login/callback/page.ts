/**
 * What every callback on a port of this machine shares: its page, its headers, and what counts as a person's own step.
 *
 * Guarantees: the page holds nothing of the request, runs nothing, and is in nobody's frame or cache.
 */
import { createServer, type IncomingMessage, type Server } from "node:http"
import { loginLimits } from "../limits.ts"
import type { CallbackFault } from "./tokens.ts"

export type RefusedCallback =
  | CallbackFault
  | "wrong-host"
  | "wrong-path"
  | "wrong-method"
  | "wrong-origin"
  | "other-browser"
  | "too-long"
  | "unanswered"

export const page = (text: string): string =>
  `<!doctype html><html lang="en"><meta charset="utf-8"><title>Caisson</title><p>${text}</p></html>\n`

export const pageHeaders = {
  "content-type": "text/html; charset=utf-8",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cache-control": "no-store",
  connection: "close",
} as const

/** Browsers say how a request came about; one that is no navigation of a person's was made by a page. */
export const isNavigation = ({ headers }: IncomingMessage): boolean => {
  const { origin, "sec-fetch-mode": mode, "sec-fetch-dest": dest } = headers
  if (origin !== undefined) return false
  return (mode === undefined || mode === "navigate") && (dest === undefined || dest === "document")
}

/** Bounded in the number, size and time of what it takes. */
export const callbackServer = (refused: (why: RefusedCallback) => void): Server => {
  const server = createServer({ maxHeaderSize: loginLimits.callbackChars.value, requestTimeout: 10_000 })
  server.maxConnections = loginLimits.callbacks.value
  server.maxRequestsPerSocket = 1
  server.on("clientError", (_error, socket) => {
    refused("too-long")
    socket.destroy()
  })
  return server
}

/** The page that was answered last is let out before its connection is ended. */
export const closeServer = async (server: Server): Promise<void> => {
  if (!server.listening) return
  const closed = Promise.withResolvers<void>()
  server.close(() => closed.resolve())
  server.closeIdleConnections()
  const late = setTimeout(() => server.closeAllConnections(), loginLimits.callbackCloseMs.value)
  await closed.promise
  clearTimeout(late)
}
