/** `caisson/client`: the daemon's API, typed. It stands on nothing of the host. */
export { type CallRequest, type Client, createClient, type MakeOptions } from "./client.ts"
export type { Ask, AskOptions } from "./ask.ts"
export type { CallEvent, EventsOptions } from "./events.ts"
export { ProblemError, Unreachable } from "./faults.ts"
export type { Envelope, Json, Operations, Problem } from "./api.ts"
export type { Place } from "./transport.ts"
