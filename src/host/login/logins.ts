/**
 * Logins of this host: where each stands, and what moves it.
 *
 * Guarantees: one at a time for each driver, workspace and user, across processes. Whoever cannot wait, or has nobody to
 * wait with, is told at once. A call gets to run only where somebody is signed in, or nobody has to be; tokens that are
 * due are refreshed before it.
 */
import type { Failure } from "../failure.ts"
import type { LoginState } from "../login-state.ts"
import type { LoginRecord } from "../store/store.ts"
import { type AfterExpiry, afterExpiry, type FoundExpired } from "./expiry.ts"
import type { LoginProgress, Person } from "../person.ts"
import { loginLimits } from "./limits.ts"
import type { LoginOwner } from "./owner.ts"
import {
  flowOf,
  isByKeys,
  keptScope,
  type LoginParts,
  openDesk,
  type OwnDesk,
  type OwnSecrets,
  VaultShut,
} from "./parts.ts"
import { timesOf } from "./oauth/tokens.ts"
import { prove } from "./proof.ts"
import { createRefreshes, lacksInMemory } from "./refresh.ts"
import { referencesOf, runSetup, type SetupEnd, setupSlugs } from "./setup.ts"
import { missingWays, type SignedInNow, signInNow } from "./sign-in-now.ts"
import { isRefreshDue, openSteps, type Seen } from "./standing.ts"
import { type AfterLack, afterLack, type Lack } from "./step-up.ts"

export interface LoginStatus {
  readonly state: LoginState
  readonly facts: Seen["facts"]
  /** ids of set-up steps still to do */
  readonly openSetup: readonly string[]
  /** secrets that it names and that are missing, or have expired; asked only where there is no login */
  readonly lacks: OwnSecrets["lacks"]
  /** what keeps it from being signed in, where that is not plain from the state */
  readonly why?: string
  /** What kept this host from finding out: no login would help. */
  readonly fault?: Failure
}

interface LoginOptions {
  readonly person: Person
  readonly signal: AbortSignal
  readonly tell?: (progress: LoginProgress) => void
  /** wait for another login that is under way */
  readonly waits: boolean
  readonly timeoutMs?: number
}

export type LoginOutcome =
  | { readonly ok: true; readonly status: LoginStatus; readonly method?: string; readonly already: boolean }
  | {
      readonly ok: false
      readonly at: "turn" | "driver"
      readonly message: string
      readonly fix?: string
      readonly status: LoginStatus
    }
  /** nothing was begun, or it was ended: no login would help */
  | { readonly ok: false; readonly at: "vault"; readonly failure: Failure; readonly status: LoginStatus }
  | {
      readonly ok: false
      readonly at: "setup"
      readonly end: Extract<SetupEnd, { ok: false }>
      readonly status: LoginStatus
    }
  | {
      readonly ok: false
      readonly at: "login"
      readonly end: Extract<SignedInNow, { ok: false }>
      readonly status: LoginStatus
    }

export interface Logins {
  status(owner: LoginOwner): Promise<LoginStatus>
  /** Its secrets are its login: nobody logs in to it (C-18). */
  isByKeys(owner: LoginOwner): Promise<boolean>
  /** As `status`, for a call: waits for a login that is under way where it may, and refreshes what is due. */
  ready(owner: LoginOwner, options: { readonly waits: boolean; readonly signal: AbortSignal }): Promise<LoginStatus>
  /** What a call found of its login. */
  expired(owner: LoginOwner, found: FoundExpired): Promise<AfterExpiry>
  /** A call was told that its login does not reach so far. */
  lacking(owner: LoginOwner, lack: Lack): Promise<AfterLack>
  login(owner: LoginOwner, options: LoginOptions): Promise<LoginOutcome>
  /** Whether there was anything to end. */
  logout(
    owner: LoginOwner,
    options: Pick<LoginOptions, "signal">,
  ): Promise<
    | { readonly ok: true; readonly was: LoginState; readonly revoked?: string }
    | { readonly ok: false; readonly message: string }
  >
  /** A refusal that is to be on record. */
  /** A call's own program renewed its tokens; `expiresAt` where the provider told when they end. */
  renewed(owner: LoginOwner, expiresAt: number | undefined): Promise<void>
  denied(owner: LoginOwner, action: string, message: string): Promise<void>
  records(): Promise<readonly LoginRecord[]>
  /** Refreshes under way are done. */
  settled(): Promise<void>
}

/** What a driver needs before a call; `nothing`: no call of it asks here. */
export const needsLogin = ({ contract: { auth, code, setup } }: LoginOwner["driver"]): boolean =>
  setup.length > 0 ||
  auth?.login !== undefined ||
  auth?.provider !== undefined ||
  (auth !== undefined && code !== undefined) ||
  (auth?.state.env.length ?? 0) > 0

/** A driver without a login is signed in by its secrets (C-18). */
const bySecrets = async (parts: LoginParts, owner: LoginOwner, seen: Seen): Promise<LoginStatus> => {
  const base = { facts: seen.facts, openSetup: [] }
  const secrets = await parts.secretsOf(owner)
  if (!secrets.ok) return { ...base, state: "unauthed", lacks: [], why: secrets.message, fault: secrets }
  const { lacks, named, fingerprint } = secrets.value
  // What a person typed was for the manifest as they knew it.
  if (seen.foreign)
    return { ...base, state: "unauthed", lacks: [], why: "its manifest was changed since somebody logged in" }
  if (lacks.length > 0) return { ...base, state: "unauthed", lacks }
  if (seen.facts.expiredSecrets === fingerprint)
    return {
      ...base,
      state: "unauthed",
      lacks: named,
      why: "its secrets were not taken any more when it was called last",
    }
  return { ...base, state: "authed", lacks: [] }
}

const statusOf = async (parts: LoginParts, owner: LoginOwner, seen: Seen): Promise<LoginStatus> => {
  const { contract } = owner.driver
  const openSetup = openSteps(contract, seen.facts).map(({ id }) => id)
  const { facts, state } = seen
  if (openSetup.length > 0)
    return { state: state === "logging-in" ? state : "setup_required", facts, openSetup, lacks: [] }
  if (contract.auth === undefined) return { state: "authed", facts, openSetup, lacks: [] }
  if (state !== "logging-in" && (await isByKeys(parts, owner))) return await bySecrets(parts, owner, seen)
  const why = state === "authed" ? undefined : facts.failure?.message
  return { state, facts, openSetup, lacks: [], ...(why === undefined ? {} : { why }) }
}

/** Steps that are open, and those before them whose answers they name. */
const stepsToDo = ({ driver: { contract } }: LoginOwner, { facts }: Seen): ReturnType<typeof openSteps> => {
  const open = openSteps(contract, facts)
  const named = new Set(open.flatMap(referencesOf))
  return contract.setup.filter((step) => open.includes(step) || (named.has(step.id) && step.kind === "prompt"))
}

export const createLogins = (parts: LoginParts): Logins => {
  const { ledger, vault, now, closing } = parts
  const refreshes = createRefreshes(parts)

  const inTurn = async (owner: LoginOwner, options: LoginOptions): Promise<LoginOutcome> => {
    const { person, tell } = options
    const ms = options.timeoutMs ?? loginLimits.loginMs.value
    const deadlineMs = Date.now() + ms
    const signal = AbortSignal.any([options.signal, closing, AbortSignal.timeout(ms)])
    await using desks = new AsyncDisposableStack()
    const open = async (facts: Seen["facts"]): Promise<OwnDesk> => {
      const found = await parts.secretsOf(owner)
      if (!found.ok) throw new VaultShut(found)
      const isExpired = found.value.fingerprint === facts.expiredSecrets
      const secrets = isExpired ? { ...found.value, lacks: found.value.named } : found.value
      return desks.use(
        openDesk(parts, owner, secrets, { person, signal, deadlineMs, facts, ...(tell === undefined ? {} : { tell }) }),
      )
    }
    const status = async (): Promise<LoginStatus> => await statusOf(parts, owner, await ledger.see(owner))
    let seen = await ledger.settle(owner)
    if (seen.foreign) {
      // What another manifest left is nothing that this one may have.
      await parts.wipe(owner, "all")
      await forgetSecrets(owner, [])
      seen = (await ledger.move(owner, [])) ?? seen
    }
    const steps = stepsToDo(owner, seen)
    if (steps.length > 0) {
      const done = async (step: string, skipped: boolean): Promise<void> => {
        const entry = { atMs: now().wallMs, ...(skipped ? { skipped } : {}) }
        await ledger.move(owner, [], (facts) => ({ ...facts, setup: { ...facts.setup, [step]: entry } }))
      }
      const login = await flowOf(parts, owner)
      const desk = await open(seen.facts)
      const end = await runSetup({
        desk,
        methods: parts.methods,
        ...(login === undefined ? {} : { login }),
        steps,
        done,
      })
      if (!end.ok) return { ok: false, at: "setup", end, status: await status() }
      await ledger.note(owner, "login.setup_done", { steps: steps.map(({ id }) => id) })
      seen = await ledger.see(owner)
    }
    const current = await status()
    if (owner.driver.contract.auth === undefined) return { ok: true, status: current, already: steps.length === 0 }
    if (current.state === "authed") {
      const proofs = owner.driver.contract.auth.login?.completesWhen ?? []
      const proven = proofs.length === 0 ? undefined : await prove(await open(seen.facts), proofs)
      const isEnough = (seen.facts.wanted ?? []).length === 0
      if (isEnough && proven?.holds !== "no") return { ok: true, status: current, already: true }
      await ledger.move(owner, ["expiry-detected", "expiry-settled"])
    }
    const flow = await flowOf(parts, owner)
    if (flow === undefined)
      return {
        ok: false,
        at: "driver",
        message: "its manifest does not say how this host could log in",
        fix: "ask the driver's author for `login.cmd` or an AUTH.md, or write its login in `logins` of caisson.yaml",
        status: current,
      }
    const missing = missingWays(flow, person)
    if (missing.length > 0) {
      const message = `the login (${flow.method}) needs a person: ${missing.join(", ")}`
      return { ok: false, at: "login", end: { ok: false, why: "needs-person", message }, status: current }
    }
    const end = await signInNow(parts, owner, flow, await open(seen.facts), async () =>
      open((await ledger.see(owner)).facts),
    )
    if (!end.ok) return { ok: false, at: "login", end, status: await status() }
    return { ok: true, status: await status(), method: end.method, already: false }
  }

  return Object.freeze({
    status: async (owner: LoginOwner) => {
      const place = owner.workspace === "" ? await anyPlace(owner) : owner
      return await statusOf(parts, place, await ledger.settleIfIdle(place))
    },
    isByKeys: (owner: LoginOwner) => isByKeys(parts, owner),
    ready: async (owner: LoginOwner, { waits, signal }: { readonly waits: boolean; readonly signal: AbortSignal }) => {
      let seen = await ledger.settleIfIdle(owner)
      if (seen.state === "logging-in" && waits) {
        using turn = await ledger.turn(owner, { waitMs: loginLimits.turnMs.value, signal })
        seen = turn === undefined ? seen : await ledger.settle(owner)
      }
      const status = await statusOf(parts, owner, seen)
      if (status.state !== "authed" || seen.state !== "authed") return status
      const isDue = isRefreshDue(owner.driver.contract, seen.facts, now())
      if (!isDue && !(await lacksInMemory(parts, owner))) return status
      const made = await refreshes.after(owner, seen.facts.freshness)
      const after = await statusOf(parts, owner, await ledger.see(owner))
      // One that could not be made may not have been needed: the call finds out. One without which there is nothing is.
      return made.end === "unreachable" && (await lacksInMemory(parts, owner))
        ? { ...after, state: "unauthed" as const, fault: notMade(owner, made.message) }
        : after
    },
    expired: (owner: LoginOwner, found: FoundExpired) => afterExpiry(parts, refreshes, owner, found),
    lacking: (owner: LoginOwner, lack: Lack) => afterLack(parts, owner, lack),
    login: async (owner: LoginOwner, options: LoginOptions) => {
      const waitMs = options.waits ? loginLimits.turnMs.value : loginLimits.briefTurnMs.value
      const onWait = (): void => options.tell?.({ at: "waiting", for: "turn" })
      // Whoever is signed in has something to be proven with.
      const seen = await ledger.settleIfIdle(owner)
      if (seen.state === "authed" && (await lacksInMemory(parts, owner)))
        await refreshes.after(owner, seen.facts.freshness)
      using turn = await ledger.turn(owner, { waitMs, signal: options.signal, onWait })
      const now = async (): Promise<LoginStatus> => statusOf(parts, owner, await ledger.see(owner))
      if (turn !== undefined)
        try {
          return await inTurn(owner, options)
        } catch (error) {
          if (!(error instanceof VaultShut)) throw error
          return { ok: false as const, at: "vault" as const, failure: error.failure, status: await now() }
        }
      const status = await now()
      return { ok: false as const, at: "turn" as const, message: "another login or refresh of it is under way", status }
    },
    logout: async (owner: LoginOwner, { signal }: Pick<LoginOptions, "signal">) => {
      using turn = await ledger.turn(owner, { waitMs: loginLimits.refreshTurnMs.value, signal })
      if (turn === undefined) return { ok: false as const, message: "a login or refresh of it is under way" }
      const seen = await ledger.settle(owner)
      const revoked = await revoke(parts, owner, signal)
      await parts.wipe(owner, "login")
      const own = (await flowOf(parts, owner))?.keeps ?? []
      await forgetSecrets(
        owner,
        setupSlugs(owner.driver.contract).filter((slug) => !own.includes(slug)),
      )
      if (seen.state === "authed") await ledger.move(owner, ["logged-out"], signedOut)
      else await ledger.note(owner, "login.ended", { state: seen.state })
      return { ok: true as const, was: seen.state, ...(revoked === undefined ? {} : { revoked }) }
    },
    renewed: async (owner: LoginOwner, expiresAt: number | undefined) => {
      const times = timesOf(expiresAt === undefined ? {} : { expiresAt }, Date.now())
      await ledger.move(owner, ["refreshed"], ({ failure: _f, refreshMs: _r, expiresMs: _e, ...facts }) => ({
        ...facts,
        ...times,
        freshness: facts.freshness + 1,
        refreshed: now(),
      }))
    },
    denied: (owner: LoginOwner, action: string, message: string) => ledger.note(owner, action, { reason: message }),
    records: () => ledger.records(),
    settled: () => refreshes.settled(),
  })

  /** Asked without a workspace: the login of any, where there is one. */
  async function anyPlace(owner: LoginOwner): Promise<LoginOwner> {
    const { driver, user } = ledger.keyOf(owner)
    const own = (await ledger.records()).filter((record) => record.driver === driver && record.user === user)
    const found = own.find(({ state }) => state === "authed") ?? own[0]
    return found === undefined ? owner : { ...owner, workspace: found.workspace }
  }

  /** What set-up keeps is no part of a login, and spared. */
  async function forgetSecrets(owner: LoginOwner, spared: readonly string[]): Promise<void> {
    const scope = keptScope(ledger, owner)
    const listed = await vault.list()
    if (!listed.ok) return
    for (const { slug, scope: its } of listed.value)
      if (
        its.user === scope.user &&
        its.workspace === scope.workspace &&
        its.driver === scope.driver &&
        !spared.includes(slug)
      )
        await vault.delete(slug, scope)
  }
}

const notMade = ({ driver: { key } }: LoginOwner, message: string): Failure => ({
  ok: false,
  code: "upstream_error",
  message: `the login of ${key} has to be refreshed, and could not be: ${message}; nobody was signed out`,
  hint: "run the call again when the network is there",
  retryable: true,
  details: { driver: key },
})

const signedOut = ({
  account: _a,
  refreshMs: _r,
  expiresMs: _e,
  refreshed: _t,
  proven: _p,
  failure: _f,
  scopes: _s,
  wanted: _w,
  ...rest
}: Seen["facts"]): Seen["facts"] => rest

const revoke = async (parts: LoginParts, owner: LoginOwner, cancel: AbortSignal): Promise<string | undefined> => {
  const flow = await flowOf(parts, owner)
  const secrets = await parts.secretsOf(owner)
  if (flow?.revoke === undefined || !secrets.ok) return undefined
  const ms = loginLimits.proofMs.value
  const signal = AbortSignal.any([cancel, parts.closing, AbortSignal.timeout(ms)])
  await using desk = openDesk(parts, owner, secrets.value, { signal, deadlineMs: Date.now() + ms })
  const end = await flow.revoke(desk).catch(() => ({ ok: false as const, message: "it broke" }))
  return end.ok ? "yes" : `no: ${end.message}`
}
