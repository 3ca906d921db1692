/** What logins stand on, handed over when the host is put together; and the desk that each flow is given. */
import type { Dialled, HostedDial } from "../../egress-proxy/serve/hosted.ts"
import type { HttpProbe } from "../../manifest/types.ts"
import type { BoundSecret } from "../secrets/bind.ts"
import type { Failure } from "../failure.ts"
import { capturedEnd } from "../secrets/captured-tokens.ts"
import { timesOf } from "./oauth/tokens.ts"
import type { HoldingVault } from "../secrets/in-memory.ts"
import type { Vault, VaultAnswer } from "../secrets/vault.ts"
import type { Instant } from "../store/instant.ts"
import type { LoginFacts } from "../store/store.ts"
import type { LoginDesk, LoginFlow, LoginMethod } from "./flow.ts"
import type { LoginProgress, Person } from "../person.ts"
import type { Ledger } from "./ledger.ts"
import type { LoginOwner } from "./owner.ts"
import type { Asked } from "./proof.ts"
import type { HomeRunner } from "./run-in-home.ts"
import type { OwnLogin, RanOwnLogin } from "./run-own.ts"

/** The secrets of a driver, for one owner. */
export interface OwnSecrets {
  readonly bound: readonly BoundSecret[]
  /** all that the driver names */
  readonly named: LoginDesk["lacks"]
  readonly lacks: LoginDesk["lacks"]
  /** names and times of those that are there; another one once any of them is set anew */
  readonly fingerprint: string
}

/** Thrown where a desk cannot be opened, and told by whoever began: its secrets cannot be read. */
export class VaultShut extends Error {
  readonly failure: Failure
  constructor(failure: Failure) {
    super(failure.message)
    this.failure = failure
  }
}

/** A driver's declared hosts, for the host's own requests. */
interface DriverOutlet extends AsyncDisposable {
  dial(to: HostedDial): Promise<Dialled>
}

export interface LoginParts {
  readonly ledger: Ledger
  readonly vault: HoldingVault
  readonly methods: readonly LoginMethod[]
  readonly run: HomeRunner
  /** the driver's own function, in the owner's home */
  readonly runOwn: (
    owner: LoginOwner,
    login: Pick<OwnLogin, "name" | "timeoutMs" | "secrets">,
    signal: AbortSignal,
  ) => Promise<RanOwnLogin>
  readonly outlet: (owner: LoginOwner) => Promise<DriverOutlet>
  readonly ask: (
    owner: LoginOwner,
    secrets: readonly BoundSecret[],
    outlet: DriverOutlet,
    probe: HttpProbe,
    signal: AbortSignal,
  ) => Promise<Asked>
  readonly secretsOf: (owner: LoginOwner) => Promise<VaultAnswer<OwnSecrets>>
  /** The owner's home: what a login leaves there, or all of it. */
  readonly wipe: (owner: LoginOwner, what: "login" | "all") => Promise<void>
  readonly now: () => Instant
  /** aborted when the host waits no longer */
  readonly closing: AbortSignal
}

interface DeskOptions {
  readonly person?: Person
  readonly signal: AbortSignal
  readonly deadlineMs: number
  readonly tell?: (progress: LoginProgress) => void
  readonly facts?: Pick<LoginFacts, "scopes" | "wanted">
}

export type OwnDesk = LoginDesk & AsyncDisposable & { readonly secrets: OwnSecrets }

/** Of several ways, the first that knows how and brings what it takes. */
export const flowOf = async ({ methods }: LoginParts, { driver }: LoginOwner): Promise<LoginFlow | undefined> => {
  for (const method of methods) {
    const flow = method.loginOf(driver)
    if (flow !== undefined && (await method.has?.(driver, "login")) !== false) return flow
  }
  return undefined
}

/** A driver without a login, whose secrets are what a call needs (C-18). */
export const isByKeys = async (parts: LoginParts, owner: LoginOwner): Promise<boolean> => {
  if (owner.driver.contract.auth?.login !== undefined) return false
  const flow = await flowOf(parts, owner)
  return flow === undefined || flow.byKeys === true
}

/** The scope of what a login keeps in the vault. */
export const keptScope = (ledger: Ledger, owner: LoginOwner): Required<Parameters<Vault["get"]>[1]> => {
  const { driver, workspace, user } = ledger.keyOf(owner)
  return { driver, workspace, user }
}

/** When tokens that a program of this owner's got by itself end, and are to be renewed, as far as the provider told. */
export const capturedTimes = async (
  { ledger, vault }: LoginParts,
  owner: LoginOwner,
): Promise<ReturnType<typeof timesOf>> => {
  const expiresAt = await capturedEnd(vault, keptScope(ledger, owner))
  return timesOf(expiresAt === undefined ? {} : { expiresAt }, Date.now())
}

export const openDesk = (
  parts: LoginParts,
  owner: LoginOwner,
  secrets: OwnSecrets,
  { person = {}, signal, deadlineMs, tell = () => undefined, facts = {} }: DeskOptions,
): OwnDesk => {
  const { ledger, vault } = parts
  const scope = keptScope(ledger, owner)
  let opened: Promise<DriverOutlet> | undefined
  const outlet = (): Promise<DriverOutlet> => (opened ??= parts.outlet(owner))
  return {
    driver: owner.driver,
    key: ledger.keyOf(owner),
    signal,
    deadlineMs,
    person,
    tell,
    lacks: secrets.lacks,
    scopes: { before: facts.scopes ?? [], wanted: facts.wanted ?? [] },
    secrets,
    run: (command, cancel) =>
      parts.run({ secrets: secrets.bound, ...command, driver: owner.driver, key: ledger.keyOf(owner) }, cancel),
    runOwn: (name, timeoutMs) => parts.runOwn(owner, { name, timeoutMs, secrets: secrets.bound }, signal),
    connect: async (to) => (await outlet()).dial({ signal, ...to }),
    ask: async (probe, cancel) => parts.ask(owner, secrets.bound, await outlet(), probe, cancel),
    kept: {
      get: (slug) => vault.get(slug, scope),
      set: (slug, value) => vault.set(slug, scope, value),
      hold: (slug, value, madeOf) => vault.hold(slug, scope, value, madeOf),
      delete: (slug) => vault.delete(slug, scope),
    },
    async [Symbol.asyncDispose]() {
      await (await opened)?.[Symbol.asyncDispose]()
    },
  }
}
