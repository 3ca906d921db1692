/**
 * What the host must remember beyond one process, as verbs. An engine is behind it; nobody else knows its tables.
 *
 * Guarantees, of every engine: a verb is one transaction (those that end calls forget old ones in another), on disk when
 * it resolves; processes that share a store see one truth. A held call has one decider at a time: `claim` is given to
 * one, whoever asks at once, and only that claim can settle or release it. Nothing is forgotten before it was settled.
 * Every row names its tenant, its workspace, and the host that owns it with its epoch. A login is changed only as it was
 * seen: one that changed meanwhile is not.
 * Does not: know what lies in a held layer, nor read any clock; whoever calls says what time it is.
 */
import type { JsonObject } from "../../manifest/types.ts"
import type { LoginState } from "../login-state.ts"
import type { Instant } from "./instant.ts"

/** Whose a row is. One host on its own data folder is one tenant and one owner, in epoch 1. */
interface Ownership {
  readonly tenant: string
  readonly epoch: number
}
interface Owned {
  /** the host; the store that is asked puts in its own */
  readonly owner: string
}
export const singleHost: Ownership & Owned = Object.freeze({ tenant: "local", owner: "local", epoch: 1 })

export type Decision = "approve" | "deny" | "expire"

export interface Claim {
  /** counts from 1 for each held call */
  readonly number: number
  readonly decision: Decision
  /** who decides */
  readonly by: string
  readonly atMs: number
}

export interface HeldOutcome {
  /** a reason's code, or `ok` */
  readonly verdict: string
  readonly committed: boolean
  /** hash of the decision's receipt, where it could be written */
  readonly receipt?: string
}

export interface NewHeldCall extends Ownership {
  /** the call's id */
  readonly id: string
  /** the workspace's id, as the data folder issued it */
  readonly workspace: string
  readonly at: Instant
  readonly holdMs: number
  /** what it takes on disk */
  readonly bytes: number
  /** what a list shows and a decision needs; small. Empty where the row was damaged: nobody is told more of it. */
  readonly facts: JsonObject
}

export interface HeldCall extends NewHeldCall, Owned {
  readonly state: "held" | "deciding" | "settled"
  /** hash of the receipt that tells of the holding, once it is known */
  readonly receipt?: string
  /** the last one; of a call that is `held` again, one that was released */
  readonly claim?: Claim
  readonly outcome?: HeldOutcome
}

export interface HoldBounds {
  /** held calls of the tenant that are not settled, with this one */
  readonly count: number
  /** what they take on disk together */
  readonly bytes: number
}

export type HoldResult = { readonly ok: true } | { readonly ok: false; readonly at: keyof HoldBounds }

export type ClaimResult =
  | { readonly ok: true; readonly held: HeldCall; readonly claim: Claim }
  | { readonly ok: false; readonly why: "absent" }
  /** `expired`: too late to approve or deny. `waiting`: too early to expire. */
  | { readonly ok: false; readonly why: "deciding" | "settled" | "expired" | "waiting"; readonly held: HeldCall }

export interface HeldFilter {
  /** absent: every tenant's, for the host itself */
  readonly tenant?: string
  readonly states: readonly HeldCall["state"][]
}

/** What something says of itself: canonical text and its digest; the text is empty where it was too long to keep. */
interface Word {
  readonly digest: string
  readonly text: string
}
export interface NewOffer {
  readonly tenant: string
  /** whose it is */
  readonly subject: string
  readonly name: string
  readonly word: Word
  readonly atMs: number
}
export interface Offer {
  readonly name: string
  readonly accepted: Word & { readonly atMs: number; readonly by: string }
  /** another word than the accepted one, the last that was heard */
  readonly waiting?: Word & { readonly atMs: number }
}
export interface OfferAcceptance {
  readonly tenant: string
  readonly subject: string
  readonly digest: string
  readonly by: string
  readonly atMs: number
}

/** Whose a login is: nobody else's, whatever they claim. */
export interface LoginKey {
  readonly tenant: string
  /** `id@major` with the origin of its manifest */
  readonly driver: string
  /** the workspace's id, as the data folder issued it */
  readonly workspace: string
  readonly user: string
}
/** What is known of a login. Names, times and words of ours; never a token. */
export interface LoginFacts {
  /** the driver, for words: `id@major` */
  readonly name: string
  /** digest of the manifest that it was begun under, and of what that led to */
  readonly manifest: string
  /** digest of whom its AUTH.md names, and what for */
  readonly provider?: string
  /** counts logins and refreshes: what ran at an earlier one ran with older tokens */
  readonly freshness: number
  /** as the proof told it */
  readonly account?: string
  /** when the login was proven */
  readonly proven?: Instant
  /** since when the tokens are what they are */
  readonly refreshed?: Instant
  /** when they are to be refreshed, and when they end, where that was told; epoch milliseconds */
  readonly refreshMs?: number
  readonly expiresMs?: number
  /** the last login or refresh that came to nothing, and for how long it is not tried again */
  readonly failure?: {
    readonly at: Instant
    readonly of: "login" | "refresh" | "setup"
    readonly message: string
    readonly coolDownMs: number
  }
  /** when each set-up step was done */
  readonly setup: Readonly<Record<string, { readonly atMs: number; readonly skipped?: boolean }>>
  /** which secrets were in use when they were found to have expired */
  readonly expiredSecrets?: string
  /** what the last login asked to be allowed, where it said so; and what a call was told to be missing since */
  readonly scopes?: readonly string[]
  readonly wanted?: readonly string[]
}
export interface LoginChange {
  readonly state: LoginState
  readonly facts: LoginFacts
}
export interface LoginRecord extends LoginKey, LoginChange {
  /** counts changes, from 1 */
  readonly generation: number
}

/** Requests to one service, by whose they are. */
interface PaceOf {
  readonly tenant: string
  readonly subject: string
  readonly at: Instant
}
export interface PaceTurn extends PaceOf {
  /** absent: as fast as one likes, unless the service asked to be left alone */
  readonly rate?: { readonly perMinute: number; readonly burst: number }
  /** a turn that is due later is not taken */
  readonly patienceMs: number
}
export interface PacePause extends PaceOf {
  readonly forMs: number
}
export interface PaceWait {
  /** the turn is this request's, once it has waited */
  readonly given: boolean
  readonly waitMs: number
  /** the rate that the driver declares, or what the service asked for */
  readonly why: "rate" | "asked"
}

/** A caller's own name for a call: a digest that holds whose it is, and a digest of all that was asked. */
export interface CallKey {
  readonly digest: string
  readonly payload: string
}
export interface NewCall extends Ownership {
  readonly id: string
  readonly user: string
  readonly actor: string
  /** as the caller named it */
  readonly workspace: string
  readonly tool: string
  readonly beganMs: number
  readonly key?: CallKey
}
export interface SettledCall {
  readonly endedMs: number
  readonly envelope: JsonObject
}
export interface CallRecord extends NewCall, Owned, Partial<SettledCall> {
  readonly state: "running" | "settled"
}
export type AdmitResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly why: "known" | "other-payload"; readonly call: CallRecord }
export interface CallFilter {
  readonly tenant: string
  readonly user?: string
  readonly state?: CallRecord["state"]
  readonly limit: number
}
/** How long calls that ended are remembered. */
export interface CallRetention {
  readonly keepMs: number
  readonly keepKeyedMs: number
}

export interface NewToken {
  readonly id: string
  readonly tenant: string
  /** SHA-256 of the whole token, hex */
  readonly hash: string
  /** whom it stands for, and what they may */
  readonly facts: {
    readonly user: string
    readonly label: string
    /** made for a program: it can never approve */
    readonly agent: boolean
    readonly workspaces: "any" | readonly string[]
    readonly roles: readonly string[]
    readonly mayApprove: boolean
    readonly by: string
  }
  readonly madeMs: number
  readonly expiresMs?: number
}
export interface TokenRecord extends NewToken {
  readonly revokedMs?: number
}

/** A person's yes to calls of one tool, given beforehand. */
export interface NewGrant {
  readonly id: string
  readonly tenant: string
  /** for whose calls */
  readonly user: string
  /** `id@major` */
  readonly tool: string
  /** the workspace's id, as the data folder issued it; absent: any */
  readonly workspace?: string
  readonly uses: number
  readonly made: Instant
  readonly expiresMs: number
  readonly facts: {
    /** whose yes it is, and by which roles */
    readonly by: string
    readonly roles: readonly string[]
    readonly reason: string
    /** where the workspace was, for words */
    readonly path?: string
    /** for this one request alone; it answers no other call */
    readonly request?: { readonly id: string; readonly digest: string }
  }
}
export interface GrantRecord extends NewGrant {
  readonly used: number
  readonly revokedMs?: number
}
export interface GrantBounds {
  /** grants of the tenant that are good, with this one */
  readonly count: number
  /** how long those that ended are remembered */
  readonly keepMs: number
}
export interface GrantFilter {
  readonly tenant: string
  /** only those that speak of such a call and have a use left; whether their time is over is seen when one is used */
  readonly covering?: { readonly user: string; readonly tool: string; readonly workspace: string }
}

/** One account for a stretch of time, and what it may hold at most with this spending in it. */
export interface SpendAccount {
  readonly subject: string
  readonly sinceMs: number
  /** absent: it is only counted */
  readonly most?: { readonly calls?: number; readonly units?: number }
}
/** One call, with the units that it costs, on every account at once. */
export interface Spending {
  readonly tenant: string
  readonly units: number
  readonly accounts: readonly SpendAccount[]
  /** stretches that began before are forgotten */
  readonly forgetMs: number
  /** nothing is debited: it is only told whether there is room */
  readonly look?: boolean
}
/** `index`: the account that has no room for it, which then holds `used`; nothing was debited. */
export type SpendResult =
  | { readonly ok: true }
  | { readonly ok: false; readonly index: number; readonly used: { readonly calls: number; readonly units: number } }

/** How many may be there: of a tenant, and of one caller's those that nobody has answered. */
export interface QuestionBounds {
  readonly count: number
  readonly ofOne: number
}
/** What a tool asks a person. */
export interface NewQuestion {
  readonly tenant: string
  /** the call that asked first */
  readonly id: string
  /** for whom, and who was authenticated */
  readonly asker: string
  readonly actor: string
  /** `id@major` */
  readonly tool: string
  /** of contract and input: the same question */
  readonly digest: string
  /** JSON: message, input, form */
  readonly text: string
  readonly askedMs: number
  readonly expiresMs: number
}
export interface AskedQuestion extends NewQuestion {
  /** JSON */
  readonly answer?: string
  readonly answeredBy?: string
}

export interface Store extends AsyncDisposable {
  /** The host that asks: calls that are held, and those under way, are told of to the host alone whose they are. */
  readonly owner: string
  /** Under a key: whoever brings it again is given the call that it stands for. */
  admit(call: NewCall): Promise<AdmitResult>
  /** What a call answered, once; also of one that was not admitted here, but never of another host's. */
  settleCall(call: NewCall, ended: SettledCall, keep: CallRetention): Promise<void>
  call(id: string): Promise<CallRecord | undefined>
  /** this host's own with a key that have not ended, of every tenant */
  openCalls(): Promise<readonly CallRecord[]>
  /** the latest first */
  calls(filter: CallFilter): Promise<readonly CallRecord[]>
  issueToken(token: NewToken): Promise<void>
  /** by its hash */
  token(hash: string): Promise<TokenRecord | undefined>
  tokens(tenant: string): Promise<readonly TokenRecord[]>
  /** whether there was one that was not revoked */
  revokeToken(tenant: string, id: string, atMs: number): Promise<boolean>
  login(key: LoginKey): Promise<LoginRecord | undefined>
  /** by user, driver and workspace */
  logins(tenant: string): Promise<readonly LoginRecord[]>
  /** Compare and set: `generation` is the one that the change was made for, 0 where there was none. Undefined: it is another by now. */
  changeLogin(key: LoginKey, generation: number, change: LoginChange): Promise<LoginRecord | undefined>
  /** The next turn, reserved where it is given. */
  turn(turn: PaceTurn): Promise<PaceWait>
  /** The question that is open, this one or the same asked before; undefined: too many are. */
  ask(question: NewQuestion, bounds: QuestionBounds): Promise<AskedQuestion | undefined>
  /** those that are open */
  asked(tenant: string, atMs: number): Promise<readonly AskedQuestion[]>
  /** False: it is not open any more. */
  answerAsked(tenant: string, id: string, answer: string, by: string, atMs: number): Promise<boolean>
  /** The answer, once there is one; it is then gone. */
  takeAnswer(tenant: string, id: string): Promise<AskedQuestion | undefined>
  /** The service asked to be left alone from now on. */
  pause(pause: PacePause): Promise<void>
  /** What is offered under a name: the first word is the accepted one; another waits beside it. */
  offered(offer: NewOffer): Promise<{ readonly offer: Offer; readonly first: boolean }>
  /** by name */
  offers(tenant: string, subject: string): Promise<readonly Offer[]>
  /** The word that waits and has this digest is the accepted one from now on; undefined where none has. */
  acceptOffer(acceptance: OfferAcceptance): Promise<Offer | undefined>
  /** All or nothing: where the bounds leave no room, nothing is remembered. */
  hold(call: NewHeldCall, bounds: HoldBounds): Promise<HoldResult>
  held(id: string): Promise<HeldCall | undefined>
  /** oldest first */
  heldList(filter: HeldFilter): Promise<readonly HeldCall[]>
  /** The receipt of the holding. */
  receipted(id: string, receipt: string): Promise<void>
  claim(id: string, decision: Decision, by: string, at: Instant): Promise<ClaimResult>
  /** Give a claim up: the call is held as before. False where the claim is not the current one. */
  release(id: string, claim: number): Promise<boolean>
  /** False where the claim is not the current one. `ended`: what the call answered in the end, where it is on record. */
  settle(id: string, claim: number, outcome: HeldOutcome, ended?: SettledCall): Promise<boolean>
  /** False where the bounds leave no room. */
  grant(grant: NewGrant, bounds: GrantBounds): Promise<boolean>
  /** what ends first is the first */
  grants(filter: GrantFilter): Promise<readonly GrantRecord[]>
  /** whether there was one that was not revoked */
  revokeGrant(tenant: string, id: string, atMs: number): Promise<boolean>
  /** One use of it, where it is good for one: the grant with that use. */
  useGrant(tenant: string, id: string, at: Instant): Promise<GrantRecord | undefined>
  /** Debit every account, or none where one has no room. */
  spend(spending: Spending): Promise<SpendResult>
}

/**
 * The store cannot be used, in words for the caller. Nothing of the verb took place, but where the message says that this
 * is not known: a server that could not be asked again in time.
 */
export class StoreUnavailable extends Error {
  readonly kind: "busy" | "unreachable" | "full" | "newer" | "foreign" | "damaged" | "trouble"
  readonly fix: string
  constructor(kind: StoreUnavailable["kind"], message: string, fix: string) {
    super(message)
    this.name = "StoreUnavailable"
    this.kind = kind
    this.fix = fix
  }
}
