/**
 * How a login or a refresh is done, whatever the way: the program's own command, a device code, a page with a callback,
 * client credentials, a key that a person types, a function of the driver's. Types alone.
 *
 * A flow does one thing: it brings the driver's state to where a login should have brought it, in the driver's home or in
 * the vault. It never says that somebody is signed in: that is proven afterwards by `completes_when`, and written down by
 * whoever ran the flow. It gets a desk, and has no other way to the network, the home, the vault or a person.
 */
import type { Dialled, HostedDial } from "../../egress-proxy/serve/hosted.ts"
import type { LoginProgress, Person } from "../person.ts"
import type { RegisteredDriver } from "../registry/types.ts"
import type { MadeOf } from "../secrets/in-memory.ts"
import type { Secret } from "../secrets/secret.ts"
import type { VaultAnswer } from "../secrets/vault.ts"
import type { LoginKey } from "../store/store.ts"
import type { AskAs } from "./proof.ts"
import type { RunInHome } from "./run-in-home.ts"
import type { OwnLogin, RanOwnLogin } from "./run-own.ts"

/** What a flow keeps in the vault: of this driver, workspace and user alone, and gone with the logout. */
interface KeptSecrets {
  get(slug: string): Promise<VaultAnswer<Secret | undefined>>
  set(slug: string, value: Secret): Promise<VaultAnswer<undefined>>
  /** in this process' memory alone, for what may not be kept, and for as long as what it was made of is kept */
  hold(slug: string, value: Secret, madeOf: MadeOf): void
  delete(slug: string): Promise<VaultAnswer<boolean>>
}

/** All that a flow has to act with. */
export interface LoginDesk {
  readonly driver: RegisteredDriver
  readonly key: LoginKey
  /** aborted when it was cancelled, when its time is over, and when the host closes */
  readonly signal: AbortSignal
  /** epoch milliseconds: when the signal is aborted at the latest */
  readonly deadlineMs: number
  readonly person: Person
  tell(progress: LoginProgress): void
  /** a command of the driver's, sealed, in its own home, without a workspace */
  readonly run: RunInHome
  /** a connection of the host's own, to hosts that the driver declares and the operator allows */
  connect(to: HostedDial): Promise<Dialled>
  readonly kept: KeptSecrets
  /** the driver's own function of that name, sealed as a command is */
  runOwn(name: OwnLogin["name"], timeoutMs: number): Promise<RanOwnLogin>
  /** one question to an address, with the credentials that the driver's own requests have */
  readonly ask: AskAs
  /** secrets that the driver names and for which there is no value, or one that expired */
  readonly lacks: readonly { readonly name: string; readonly slug: string }[]
  /** what the login before asked to be allowed, and what a call was told to be missing since */
  readonly scopes: { readonly before: readonly string[]; readonly wanted: readonly string[] }
}

/** What can be known of the tokens themselves, beside who they belong to. */
interface Tokens {
  /** epoch milliseconds */
  readonly expiresMs?: number
  /** when it is to be refreshed next, where that was said */
  readonly refreshMs?: number
}

/**
 * Why it came to nothing. `refused`: the other side said no. `unreachable`: it could not be asked, so that nothing is known
 * of the login. `broken`: the driver's own fault. `needs-person`: somebody must do something, and nobody is there.
 */
export interface FlowFailed {
  readonly ok: false
  readonly why: "refused" | "unreachable" | "cancelled" | "timed-out" | "broken" | "needs-person"
  readonly message: string
  readonly fix?: string
}

/** `account`: where the flow itself was told; what the proof tells counts for more. */
export type LoginEnd =
  | (Tokens & {
      readonly ok: true
      readonly account?: string
      /** what was asked to be allowed, where a later login may have to ask for more */
      readonly scopes?: readonly string[]
    })
  | FlowFailed
export type RefreshEnd = (Tokens & { readonly ok: true }) | FlowFailed

export interface LoginFlow {
  readonly method: string
  /** it asks a person for the secrets that the driver names, and for nothing else: they are the login (C-18) */
  readonly byKeys?: true
  /** slugs that it keeps its tokens under */
  readonly keeps?: readonly string[]
  /** what it needs a person for; empty: it runs without one */
  readonly needs: readonly (keyof Person)[]
  run(desk: LoginDesk): Promise<LoginEnd>
  /** Tell the provider that the tokens are not wanted any more; before they are wiped. Absent: it offers none. */
  revoke?(desk: LoginDesk): Promise<RefreshEnd>
}

/** What is new must be durable, in the home or the vault, before this answers. One at a time for a driver, workspace and user. */
export interface RefreshFlow {
  readonly method: string
  /** the slug of what it makes, where that is held in memory: a process that has none makes it before a call */
  readonly inMemory?: string
  run(desk: LoginDesk): Promise<RefreshEnd>
}

/** One way to log in, asked for each driver; of several, the first that knows how. */
export interface LoginMethod {
  /** whether the driver brings what it takes, where only a look at it tells; absent: it does */
  has?(driver: RegisteredDriver, what: "login" | "refresh"): Promise<boolean>
  loginOf(driver: RegisteredDriver): LoginFlow | undefined
  refreshOf(driver: RegisteredDriver): RefreshFlow | undefined
  /** a set-up step of kind `oauth`: what it obtains is kept under this slug */
  oauthOf?(driver: RegisteredDriver, slug: string): LoginFlow | undefined
}
