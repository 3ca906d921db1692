/** A driver's login, for one user in one workspace. */
import type { CallError } from "../failure.ts"
import type { LoginState } from "../login-state.ts"
import type { LoginProgress, Person } from "../person.ts"
import type { ListOptions } from "./asking.ts"

export interface WorkspaceOptions extends ListOptions {
  /** default: the folder that this process is in */
  readonly workspace?: string
}

export interface LogoutDriverOptions extends WorkspaceOptions {
  readonly signal?: AbortSignal
}

export interface LoginDriverOptions extends LogoutDriverOptions {
  /** whoever is there, as far as they can be reached; default: nobody */
  readonly person?: Person
  readonly onProgress?: (progress: LoginProgress) => void
  /** wait for another login of the same that is under way; default: no */
  readonly waits?: boolean
  readonly timeoutMs?: number
}

interface LoginFigures {
  readonly state: LoginState
  /** as the proof told it */
  readonly account?: string
  /** ISO: when the tokens end, when the login was proven, when it was refreshed last */
  readonly expires?: string
  readonly proven?: string
  readonly refreshed?: string
  /** set-up steps still to do */
  readonly pending?: readonly string[]
  /** what keeps it from being signed in */
  readonly why?: string
}

export type LoginReport =
  | (LoginFigures & {
      readonly ok: true
      /** `id@major` */
      readonly driver: string
      /** somebody was signed in before */
      readonly already: boolean
      readonly method?: string
    })
  | { readonly ok: false; readonly error: CallError }

export type LogoutReport =
  | {
      readonly ok: true
      readonly driver: string
      readonly was: LoginState
      /** `yes`, or why the provider was not told; absent: it offers no way */
      readonly revoked?: string
    }
  | { readonly ok: false; readonly error: CallError }

export interface AuthListing extends LoginFigures {
  readonly driver: string
  readonly user: string
  readonly workspace: string
  /** what a person does next; absent: nothing */
  readonly next?: string
}

export type AuthReport =
  | { readonly ok: true; readonly logins: readonly AuthListing[] }
  | { readonly ok: false; readonly error: CallError }
