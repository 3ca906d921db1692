/**
 * What the host must remember beyond one process, as verbs. An engine is behind it; nobody else knows its tables.
 *
 * Guarantees, of every engine: a verb is one transaction, on disk when it resolves; processes that share a store see one
 * truth. A held call has one decider at a time: `claim` is given to one, whoever asks at once, and only that claim can
 * settle or release it. Nothing is forgotten before it was settled. Every row names its tenant, its workspace, and the
 * host that owns it with its epoch.
 * Does not: know what lies in a held layer, nor read any clock; whoever calls says what time it is.
 */
import type { JsonObject } from "../../manifest/types.ts"
import type { Instant } from "./instant.ts"

/** Whose a row is. One host on its own data folder is one tenant and one owner, in epoch 1. */
interface Ownership {
  readonly tenant: string
  readonly owner: string
  readonly epoch: number
}
export const singleHost: Ownership = Object.freeze({ tenant: "local", owner: "local", epoch: 1 })

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

export interface HeldCall extends NewHeldCall {
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
  readonly tenant: string
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

export interface Store extends AsyncDisposable {
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
  /** False where the claim is not the current one. */
  settle(id: string, claim: number, outcome: HeldOutcome): Promise<boolean>
}

/** The store cannot be used, in words for the caller. Nothing of the verb took place. */
export class StoreUnavailable extends Error {
  readonly kind: "busy" | "full" | "newer" | "foreign" | "damaged" | "trouble"
  readonly fix: string
  constructor(kind: StoreUnavailable["kind"], message: string, fix: string) {
    super(message)
    this.name = "StoreUnavailable"
    this.kind = kind
    this.fix = fix
  }
}
