/**
 * One request of a person's browser, made again to a program inside its sandbox; and the program's page, made harmless.
 *
 * Guarantees: a GET of the given target with a host name and nothing else of the browser's: no cookie, no referrer. What
 * comes back is bounded in size and time; of its headers only where it leads to and what kind of text it is are kept, so
 * that no cookie is set and no script runs where the person's browser shows it.
 */
import { request } from "node:http"
import type { Duplex } from "node:stream"
import { loginLimits } from "../limits.ts"

export interface ProgramAnswer {
  readonly status: number
  /** where the program sends the browser */
  readonly location?: URL
  /** its page, where that is text of a bounded size */
  readonly text?: { readonly type: string; readonly body: Buffer }
}

/** Of a page that a program wrote: no scripts, forms, frames, and nothing fetched. */
export const strangersPage =
  "default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'; form-action 'none'; sandbox"

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308])
const TEXTS = /^text\/(?:html|plain)\s*(?:$|;)/i

const bodyOf = async (stream: AsyncIterable<Uint8Array>): Promise<Buffer | undefined> => {
  const parts: Uint8Array[] = []
  let size = 0
  for await (const part of stream) {
    size += part.length
    if (size > loginLimits.callbackBytes.value) return undefined
    parts.push(part)
  }
  return Buffer.concat(parts)
}

/** Undefined: the program did not answer, or with something else than HTTP. The connection is closed in any case. */
export const askProgram = (connection: Duplex, at: URL, signal: AbortSignal): Promise<ProgramAnswer | undefined> => {
  const done = Promise.withResolvers<ProgramAnswer | undefined>()
  const stop = AbortSignal.any([signal, AbortSignal.timeout(loginLimits.callbackAnswerMs.value)])
  const asked = request({
    createConnection: () => connection,
    method: "GET",
    path: at.pathname + at.search,
    headers: { host: at.host, accept: "text/html, text/plain", "accept-encoding": "identity", connection: "close" },
    maxHeaderSize: loginLimits.callbackChars.value,
    signal: stop,
  })
  asked.on("error", () => done.resolve(undefined))
  asked.on("close", () => done.resolve(undefined))
  asked.on("upgrade", () => done.resolve(undefined))
  asked.on("response", (response) => {
    const { statusCode: status = 0, headers } = response
    const leads = REDIRECTS.has(status) && headers.location !== undefined ? URL.parse(headers.location, at.href) : null
    const location = leads !== null && /^https?:$/.test(leads.protocol) ? { location: leads } : {}
    const { "content-type": type = "", "content-encoding": encoding } = headers
    const isText = TEXTS.test(type) && type.length < 100 && encoding === undefined
    bodyOf(response).then(
      (body) =>
        done.resolve({ status, ...location, ...(isText && body !== undefined ? { text: { type, body } } : {}) }),
      () => done.resolve(undefined),
    )
  })
  asked.end()
  return done.promise.finally(() => connection.destroy())
}
