/**
 * The daemon's API as functions, over its Unix socket or over TCP with a token.
 *
 * Guarantees: `calls.make` answers with the call's envelope, however the call ended; what the daemon refuses to take at all
 * is thrown (`ProblemError`), as is that nobody answers (`Unreachable`). Nothing is asked twice by itself: who wants to ask again
 * for a call that may have been made gives it a `key`. Every operation of the document is there, as `ask`.
 */
import type { Envelope, Operations } from "./api.ts"
import { type Ask, type AskOptions, asking } from "./ask.ts"
import { type CallEvent, eventsOf, type EventsOptions } from "./events.ts"
import { Unreachable } from "./faults.ts"
import type { Place } from "./transport.ts"

type Answer<O extends keyof Operations> = Operations[O]["answer"]
type Body<O extends keyof Operations> = Operations[O]["request"] extends { readonly body: infer B } ? B : never
type Query<O extends keyof Operations> = Operations[O]["request"] extends { readonly query?: infer Q } ? Q : never

export type CallRequest = Body<"makeCall">
export interface MakeOptions extends AskOptions {
  /** the caller's own name for this call: brought again, it is given the first answer and nothing is run */
  readonly key?: string
  /** a yes beforehand to what the call asks approval for; it counts from who may approve */
  readonly approved?: boolean
  /** so many seconds it waits for its workspace, instead of failing on a conflict */
  readonly wait?: number
}

interface DecideOptions extends AskOptions {
  /** why, for the receipt of the decision */
  readonly reason?: string
}

export interface Client {
  readonly calls: {
    /** Make a call and wait for its end. Without a key, an abort ends the call. */
    make(request: CallRequest, options?: MakeOptions): Promise<Envelope>
    /** Make a call that goes on by itself; answers with its id. */
    begin(request: CallRequest, options?: MakeOptions): Promise<string>
    get(id: string, options?: AskOptions): Promise<Answer<"getCall">>
    list(query?: Query<"listCalls">, options?: AskOptions): Promise<Answer<"listCalls">["calls"]>
    cancel(id: string, options?: AskOptions): Promise<void>
    /** What happens in a call, from its beginning or after an event, until it ends. */
    events(id: string, options?: EventsOptions): AsyncIterable<CallEvent>
  }
  readonly approvals: {
    list(options?: AskOptions): Promise<Answer<"listApprovals">["approvals"]>
    get(id: string, options?: AskOptions): Promise<Answer<"getApproval">>
    decide(id: string, decision: "approve" | "deny", options?: DecideOptions): Promise<Envelope>
  }
  readonly tools: {
    list(options?: AskOptions): Promise<Answer<"listTools">>
    get(id: string, options?: AskOptions): Promise<Answer<"getTool">>
  }
  readonly drivers: {
    list(options?: AskOptions): Promise<Answer<"listDrivers">>
    get(id: string, options?: AskOptions): Promise<Answer<"getDriver">>
  }
  why(request: CallRequest, options?: AskOptions): Promise<Answer<"explainCall">>
  readonly tokens: {
    list(query?: Query<"listTokens">, options?: AskOptions): Promise<Answer<"listTokens">["tokens"]>
    /** what it opens with is in this answer, and never told again */
    create(token: Body<"createToken">, options?: AskOptions): Promise<Answer<"createToken">>
    revoke(id: string, query?: Query<"revokeToken">, options?: AskOptions): Promise<void>
  }
  readonly secrets: {
    list(options?: AskOptions): Promise<Answer<"listSecrets">["secrets"]>
    set(secret: Body<"setSecret">, options?: AskOptions): Promise<void>
    /** whether there was one */
    remove(id: string, query?: Query<"removeSecret">, options?: AskOptions): Promise<boolean>
  }
  /** any operation of the document, by its name */
  readonly ask: Ask
}

const callHeaders = ({
  key,
  approved,
  wait,
}: MakeOptions): NonNullable<Operations["makeCall"]["request"]["headers"]> => ({
  ...(key === undefined ? {} : { "idempotency-key": key }),
  ...(approved === true ? { "caisson-approved": "yes" as const } : {}),
  ...(wait === undefined ? {} : { prefer: `wait=${wait}` }),
})

const callsOf = (place: Place, ask: Ask): Client["calls"] => ({
  make: async (body, options = {}) => {
    const told = await ask("makeCall", { body, headers: callHeaders(options) }, options)
    if ("ok" in told) return told
    throw new Unreachable("strange", "the daemon answered before the call had ended")
  },
  begin: async (body, options = {}) => {
    const own = callHeaders(options)
    const headers = { ...own, prefer: own.prefer === undefined ? "respond-async" : `respond-async, ${own.prefer}` }
    return (await ask("makeCall", { body, headers }, options)).call
  },
  get: (id, options) => ask("getCall", { params: { id } }, options),
  list: async (query = {}, options) => (await ask("listCalls", { query }, options)).calls,
  cancel: async (id, options) => void (await ask("cancelCall", { params: { id } }, options)),
  events: (id, options) => eventsOf(place, id, options),
})

export const createClient = (place: Place): Client => {
  const ask = asking(place)
  return Object.freeze({
    ask,
    calls: callsOf(place, ask),
    approvals: {
      list: async (options?: AskOptions) => (await ask("listApprovals", {}, options)).approvals,
      get: (id: string, options?: AskOptions) => ask("getApproval", { params: { id } }, options),
      decide: (id: string, decision: "approve" | "deny", { reason, ...options }: DecideOptions = {}) =>
        ask(
          "decideApproval",
          { params: { id }, body: { decision, ...(reason === undefined ? {} : { reason }) } },
          options,
        ),
    },
    tools: {
      list: (options?: AskOptions) => ask("listTools", {}, options),
      get: (id: string, options?: AskOptions) => ask("getTool", { params: { id } }, options),
    },
    drivers: {
      list: (options?: AskOptions) => ask("listDrivers", {}, options),
      get: (id: string, options?: AskOptions) => ask("getDriver", { params: { id } }, options),
    },
    why: (body: CallRequest, options?: AskOptions) => ask("explainCall", { body }, options),
    tokens: {
      list: async (query: Query<"listTokens"> = {}, options?: AskOptions) =>
        (await ask("listTokens", { query }, options)).tokens,
      create: (body: Body<"createToken">, options?: AskOptions) => ask("createToken", { body }, options),
      revoke: async (id: string, query: Query<"revokeToken"> = {}, options?: AskOptions) =>
        ask("revokeToken", { params: { id }, query }, options),
    },
    secrets: {
      list: async (options?: AskOptions) => (await ask("listSecrets", {}, options)).secrets,
      set: async (body: Body<"setSecret">, options?: AskOptions) => ask("setSecret", { body }, options),
      remove: async (id: string, query: Query<"removeSecret"> = {}, options?: AskOptions) =>
        (await ask("removeSecret", { params: { id }, query }, options)).removed,
    },
  })
}
