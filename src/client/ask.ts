/**
 * Any operation of the document, by its name and with its types.
 *
 * Guarantees: what is asked and what is answered have the document's forms, as far as types go; a refusal of the daemon's is
 * thrown as `ProblemError`, and where no answer came, `Unreachable`. What is not the API's form of an answer is never taken
 * for one.
 */
import type { Operations, Problem } from "./api.ts"
import { routes } from "./api.ts"
import { ProblemError, Unreachable } from "./faults.ts"
import { type Place, send, textOf } from "./transport.ts"

export interface AskOptions {
  /** whom the request is for, where the caller may act for others */
  readonly user?: string
  readonly signal?: AbortSignal
}

type Request<O extends keyof Operations> = Operations[O]["request"]
type Given<O extends keyof Operations> =
  Record<never, never> extends Request<O>
    ? [given?: Request<O>, options?: AskOptions]
    : [given: Request<O>, options?: AskOptions]
export type Ask = <O extends keyof Operations>(operation: O, ...given: Given<O>) => Promise<Operations[O]["answer"]>

interface Parts {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>
  readonly headers?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
}

/** The address of an operation, with nothing in it that could lead elsewhere. */
export const pathOf = (template: string, { params = {}, query = {} }: Parts): string => {
  const path = template.replaceAll(/\{([^}]+)\}/g, (_, name: string) => {
    const value = params[name] ?? ""
    // Dots alone would be a step up.
    return /^\.*$/.test(value) ? value.replaceAll(".", "%2E") : encodeURIComponent(value)
  })
  const asked = new URLSearchParams(
    Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [[name, String(value)] as [string, string]],
    ),
  ).toString()
  return asked === "" ? path : `${path}?${asked}`
}

export const headersOf = (
  given: Parts["headers"] = {},
  { user }: AskOptions = {},
): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(Object.entries(given).filter((each): each is [string, string] => each[1] !== undefined)),
  ...(user === undefined ? {} : { "caisson-user": user }),
})

const isProblem = (value: unknown): value is Problem =>
  typeof value === "object" && value !== null && "code" in value && "detail" in value && "status" in value

const parsed = (text: string, status: number): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    throw new Unreachable("strange", `what answers there (status ${status}) is not the API`)
  }
}

export const problemIn = (text: string, status: number): ProblemError => {
  const value = parsed(text, status)
  if (isProblem(value)) return new ProblemError(value)
  throw new Unreachable("strange", `what answers there (status ${status}) is not the API`)
}

export const asking =
  (place: Place): Ask =>
  async (operation, ...[given = {}, options = {}]) => {
    const { method, path } = routes[operation]
    const parts: Parts = given
    const { signal } = options
    const answer = await send(place, {
      method,
      path: pathOf(path, parts),
      headers: headersOf(parts.headers, options),
      ...(parts.body === undefined ? {} : { body: JSON.stringify(parts.body) }),
      ...(signal === undefined ? {} : { signal }),
    })
    const text = await textOf(answer, signal)
    const status = answer.statusCode ?? 0
    if (status === 204) return undefined as Operations[typeof operation]["answer"]
    const type = (answer.headers["content-type"] ?? "").split(";")[0]?.trim()
    if (type === "application/problem+json") throw problemIn(text, status)
    if (type === "text/plain" || type === "application/x-ndjson") return text as Operations[typeof operation]["answer"]
    if (type !== "application/json")
      throw new Unreachable("strange", `what answers there (status ${status}) is not the API`)
    return parsed(text, status) as Operations[typeof operation]["answer"]
  }
