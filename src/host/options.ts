/**
 * What a program hands over beside a request: who calls, and how to reach them.
 *
 * Guarantees: it is read once, when the host is asked; a caller that is changed later changes nothing. A mistake in it is
 * the program's own and is thrown, never answered: nothing that is merely true-ish is a yes.
 */
import { type Caller, callerFault, processCaller } from "./access/caller.ts"
import type {
  CallOptions,
  CallsOptions,
  DecideOptions,
  InstallDriverOptions,
  ListOptions,
  LoginDriverOptions,
  LogoutDriverOptions,
  WorkspaceOptions,
  SecretOptions,
  WhyOptions,
  ReceiptsOptions,
  ReviewOptions,
  RunOptions,
  GrantOptions,
  TokenListOptions,
  TokenOptions,
} from "./types.ts"
import { unknownKey } from "./unknown-key.ts"

const LIST: readonly (keyof ListOptions)[] = ["caller"]
const WHY: readonly (keyof WhyOptions)[] = ["caller", "signal", "unreadable", "empty"]
const CALL: readonly (keyof CallOptions)[] = [
  ...WHY,
  "approved",
  "approve",
  "elicit",
  "onEvent",
  "onChanges",
  "record",
  "replay",
  "key",
  "wait",
]
const RUN: readonly (keyof RunOptions)[] = [
  ...LIST,
  "signal",
  "approved",
  "approve",
  "onEvent",
  "onChanges",
  "record",
  "replay",
  "attachment",
  "stdin",
]
const CALLS: readonly (keyof CallsOptions)[] = [...LIST, "limit"]
const TOKENS: readonly (keyof TokenListOptions)[] = [...LIST, "tenant"]
const TOKEN: readonly (keyof TokenOptions)[] = [...TOKENS, "user", "label", "agent", "workspaces", "roles", "days"]
const GRANT: readonly (keyof GrantOptions)[] = [...LIST, "tool", "user", "workspace", "uses", "until", "days", "reason"]
const STOPPABLE: readonly (keyof DecideOptions & keyof InstallDriverOptions)[] = [...LIST, "signal"]
const DECIDE: readonly (keyof DecideOptions)[] = [...STOPPABLE, "reason"]
const INSTALL: readonly (keyof InstallDriverOptions)[] = [...STOPPABLE, "onProgress"]
const SECRET: readonly (keyof SecretOptions)[] = [...LIST, "user", "shared", "workspace", "driver"]
const REVIEW: readonly (keyof ReviewOptions)[] = [...LIST, "accept", "asks"]
const WORKSPACE: readonly (keyof WorkspaceOptions)[] = [...LIST, "workspace"]
const LOGOUT: readonly (keyof LogoutDriverOptions)[] = [...WORKSPACE, "signal"]
const LOGIN: readonly (keyof LoginDriverOptions)[] = [...LOGOUT, "person", "onProgress", "waits", "timeoutMs"]
const RECEIPTS: readonly (keyof ReceiptsOptions)[] = [
  ...CALLS,
  "call",
  "tool",
  "user",
  "verdict",
  "since",
  "until",
  "wrote",
  "host",
  "denied",
  "cursor",
]
const KNOWN = {
  receipts: RECEIPTS,
  workspace: WORKSPACE,
  logout: LOGOUT,
  login: LOGIN,
  secret: SECRET,
  list: LIST,
  why: WHY,
  call: CALL,
  run: RUN,
  calls: CALLS,
  tokens: TOKENS,
  token: TOKEN,
  grant: GRANT,
  decide: DECIDE,
  install: INSTALL,
  review: REVIEW,
}

const isSignal = (value: unknown): boolean => value instanceof AbortSignal
const isText = (value: unknown): boolean => typeof value === "string" && value !== ""
const areTexts = (value: unknown): boolean => Array.isArray(value) && value.every(isText)
const isFunction = (value: unknown): boolean => typeof value === "function"
type Keys = Exclude<
  | keyof CallOptions
  | keyof RunOptions
  | keyof InstallDriverOptions
  | keyof SecretOptions
  | keyof ReviewOptions
  | keyof LoginDriverOptions
  | keyof CallsOptions
  | keyof TokenOptions
  | keyof GrantOptions
  | keyof ReceiptsOptions,
  "caller"
>
const FORMS: Readonly<Record<Keys, readonly [(value: unknown) => boolean, string]>> = {
  signal: [isSignal, "an AbortSignal"],
  unreadable: [(value) => typeof value === "string", "text"],
  approved: [(value) => typeof value === "boolean", "true or false"],
  approve: [isFunction, "a function"],
  attachment: [(value) => typeof value === "object" && value !== null, "an object"],
  stdin: [(value) => value instanceof Uint8Array, "bytes"],
  key: [(value) => typeof value === "string", "text"],
  wait: [(value) => Number.isSafeInteger(value) && (value as number) > 0, "a whole number above 0"],
  empty: [isText, "text"],
  record: [isText, "text"],
  replay: [isText, "text"],
  limit: [(value) => Number.isSafeInteger(value) && (value as number) > 0, "a whole number above 0"],
  tenant: [isText, "text"],
  label: [(value) => typeof value === "string", "text"],
  agent: [(value) => typeof value === "boolean", "true or false"],
  workspaces: [(value) => value === "any" || areTexts(value), '"any" or a list of folders'],
  roles: [areTexts, "a list of roles"],
  days: [(value) => typeof value === "number", "a number"],
  tool: [isText, "text"],
  uses: [(value) => typeof value === "number", "a number"],
  until: [isText, "text"],
  reason: [(value) => typeof value === "string", "text"],
  accept: [(value) => typeof value === "string", "text"],
  asks: [areTexts, "a list of lines"],
  elicit: [isFunction, "a function"],
  onEvent: [isFunction, "a function"],
  user: [isText, "text"],
  workspace: [isText, "text"],
  driver: [isText, "text"],
  shared: [(value) => typeof value === "boolean", "true or false"],
  onChanges: [isFunction, "a function"],
  onProgress: [isFunction, "a function"],
  person: [(value) => typeof value === "object" && value !== null, "an object"],
  waits: [(value) => typeof value === "boolean", "true or false"],
  call: [isText, "text"],
  verdict: [isText, "text"],
  since: [isText, "text"],
  wrote: [isText, "text"],
  host: [isText, "text"],
  cursor: [isText, "text"],
  denied: [(value) => typeof value === "boolean", "true or false"],
  timeoutMs: [(value) => Number.isSafeInteger(value) && (value as number) > 0, "a whole number above 0"],
}

const formFault = (key: keyof typeof FORMS, value: unknown): string | undefined => {
  const [fits, form] = FORMS[key]
  return fits(value) ? undefined : `\`${key}\` is not ${form}`
}

const faultOf = (options: object, known: readonly string[]): string | undefined => {
  const odd = unknownKey(options, known)
  if (odd !== undefined) return `${odd.message} (${odd.fix})`
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined) continue
    const fault = key === "caller" ? callerFault(value) : formFault(key as keyof typeof FORMS, value)
    if (fault !== undefined) return fault
  }
  return undefined
}

const frozen = ({ workspaces, roles, ...caller }: Caller): Caller =>
  Object.freeze({
    ...caller,
    workspaces: workspaces === "any" ? workspaces : Object.freeze([...workspaces]),
    roles: Object.freeze([...roles]),
  })

/** `name` is the method that was given them. */
export const readOptions = <T extends ListOptions>(
  name: string,
  of: keyof typeof KNOWN,
  options: T,
): T & { readonly caller: Caller } => {
  const fault = faultOf(options, KNOWN[of])
  if (fault !== undefined) throw new TypeError(`the options of ${name}: ${fault}`)
  return { ...options, caller: frozen(options.caller ?? processCaller()) }
}
