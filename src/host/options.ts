/**
 * What a program hands over beside a request: who calls, and how to reach them.
 *
 * Guarantees: it is read once, when the host is asked; a caller that is changed later changes nothing. A mistake in it is
 * the program's own and is thrown, never answered: nothing that is merely true-ish is a yes.
 */
import { type Caller, callerFault, processCaller } from "./access/caller.ts"
import type {
  CallOptions,
  DecideOptions,
  InstallDriverOptions,
  ListOptions,
  SecretOptions,
  WhyOptions,
  ReviewOptions,
} from "./types.ts"
import { unknownKey } from "./unknown-key.ts"

const LIST: readonly (keyof ListOptions)[] = ["caller"]
const WHY: readonly (keyof WhyOptions)[] = ["caller", "signal", "unreadable"]
const CALL: readonly (keyof CallOptions)[] = [...WHY, "approved", "approve", "elicit", "onEvent"]
const DECIDE: readonly (keyof DecideOptions)[] = [...LIST, "signal"]
const INSTALL: readonly (keyof InstallDriverOptions)[] = [...DECIDE, "onProgress"]
const SECRET: readonly (keyof SecretOptions)[] = [...LIST, "user", "shared", "workspace", "driver"]
const REVIEW: readonly (keyof ReviewOptions)[] = [...LIST, "accept"]
const KNOWN = { secret: SECRET, list: LIST, why: WHY, call: CALL, decide: DECIDE, install: INSTALL, review: REVIEW }

const isSignal = (value: unknown): boolean => value instanceof AbortSignal
const isText = (value: unknown): boolean => typeof value === "string" && value !== ""
const isFunction = (value: unknown): boolean => typeof value === "function"
type Keys = Exclude<
  keyof CallOptions | keyof InstallDriverOptions | keyof SecretOptions | keyof ReviewOptions,
  "caller"
>
const FORMS: Readonly<Record<Keys, readonly [(value: unknown) => boolean, string]>> = {
  signal: [isSignal, "an AbortSignal"],
  unreadable: [(value) => typeof value === "string", "text"],
  approved: [(value) => typeof value === "boolean", "true or false"],
  approve: [isFunction, "a function"],
  accept: [(value) => typeof value === "string", "text"],
  elicit: [isFunction, "a function"],
  onEvent: [isFunction, "a function"],
  user: [isText, "text"],
  workspace: [isText, "text"],
  driver: [isText, "text"],
  shared: [(value) => typeof value === "boolean", "true or false"],
  onProgress: [isFunction, "a function"],
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
