/** Who may come in over the API, and yeses that are given beforehand. */
import type { Caller } from "../access/caller.ts"
import type { HostAnswer, ListOptions } from "./asking.ts"

export interface TokenOptions extends ListOptions {
  /** whom it stands for; default: the caller's own user */
  readonly user?: string
  readonly tenant?: string
  /** what it is for, in words */
  readonly label?: string
  /** default: yes. Such a token can never approve */
  readonly agent?: boolean
  /** folders that it may be used on, and those below them */
  readonly workspaces?: "any" | readonly string[]
  readonly roles?: readonly string[]
  readonly days?: number
}

export interface TokenListing {
  readonly id: string
  readonly tenant: string
  readonly user: string
  readonly label: string
  readonly agent: boolean
  readonly workspaces: "any" | readonly string[]
  readonly roles: readonly string[]
  readonly made: string
  readonly by: string
  readonly expires?: string
  readonly revoked?: string
}

export interface IssuedToken extends TokenListing {
  /** told this once, and kept nowhere */
  readonly token: string
}

export interface TokensOfHost {
  issue(options?: TokenOptions): HostAnswer<IssuedToken>
  list(options?: TokenListOptions): HostAnswer<readonly TokenListing[]>
  revoke(id: string, options?: TokenListOptions): HostAnswer<undefined>
  /** Who shows it; undefined for one that is no good, whatever the reason. */
  callerOf(token: string): Promise<Caller | undefined>
}

export interface TokenListOptions extends ListOptions {
  readonly tenant?: string
}

export interface GrantOptions extends ListOptions {
  /** `id`, or `id@major` */
  readonly tool: string
  /** for whose calls; default: the caller's own user */
  readonly user?: string
  /** the folder that its calls are on, or `any` */
  readonly workspace?: string
  /** how many calls; default: 1 */
  readonly uses?: number
  /** an ISO moment; or a number of days, by default 1 */
  readonly until?: string
  readonly days?: number
  /** in words, for whoever reads the evidence */
  readonly reason?: string
}

export interface GrantListing {
  readonly id: string
  readonly tenant: string
  readonly user: string
  readonly tool: string
  readonly workspace: string
  readonly uses: number
  readonly used: number
  readonly made: string
  readonly by: string
  readonly expires: string
  readonly revoked?: string
  readonly reason: string
  /** is it good for one more call */
  readonly good: boolean
}

export interface GrantsOfHost {
  /** Who may approve says yes beforehand. */
  create(options: GrantOptions): HostAnswer<GrantListing>
  list(options?: ListOptions): HostAnswer<readonly GrantListing[]>
  revoke(id: string, options?: ListOptions): HostAnswer<undefined>
}
