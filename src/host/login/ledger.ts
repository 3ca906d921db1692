/**
 * Logins in the store, moved along the table and along nothing else, one at a time for each owner.
 *
 * Guarantees: a state changes by an event that the table has, on the record as it is in the store at that moment; each
 * change leaves a line in the audit log, after it is durable. Who has the turn of an owner is alone at it across
 * processes; the turn is the kernel's lock, so that it ends with its holder. A login whose holder is gone is found by
 * whoever gets the turn next, and ended as the table says.
 */
import { createHash } from "node:crypto"
import { join } from "node:path"
import { loginLocksFolder } from "../../data-folder/paths.ts"
import type { JsonObject } from "../../manifest/types.ts"
import { fileLock, tryFileLock } from "../data/file-lock.ts"
import type { EventDraft } from "../receipts/event.ts"
import { driverScope } from "../secrets/scopes.ts"
import { type LoginFacts, type LoginKey, type LoginRecord, singleHost, type Store } from "../store/store.ts"
import { loginLimits } from "./limits.ts"
import type { LoginOwner } from "./owner.ts"
import { type Seen, seenBy } from "./standing.ts"
import { afterAll, type LoginEvent } from "./states.ts"

interface TurnWait {
  readonly waitMs: number
  readonly signal?: AbortSignal
  readonly onWait?: () => void
}

export interface Ledger {
  keyOf(owner: LoginOwner): LoginKey
  see(owner: LoginOwner): Promise<Seen>
  /** Events in their order, as one change. Undefined where the table does not have them from where it stands. */
  move(
    owner: LoginOwner,
    events: readonly LoginEvent[],
    change?: (facts: LoginFacts) => LoginFacts,
  ): Promise<Seen | undefined>
  /** The owner's turn; undefined where the wait ended without it. */
  turn(owner: LoginOwner, wait: TurnWait): Promise<Disposable | undefined>
  /** With the turn: what a login whose holder is gone left behind is settled. */
  settle(owner: LoginOwner): Promise<Seen>
  /** Without a turn: the same, where nobody has it. */
  settleIfIdle(owner: LoginOwner): Promise<Seen>
  note(owner: LoginOwner, action: string, metadata?: JsonObject): Promise<void>
  /** all, of every user */
  records(): Promise<readonly LoginRecord[]>
}

interface LedgerParts {
  readonly data: string
  /** the bundled catalogue's folder */
  readonly catalogue: string
  readonly store: () => Promise<Store>
  readonly record: (draft: EventDraft) => Promise<unknown>
}

/** What the audit log calls each event; others leave no line of their own. */
const rows: Readonly<Partial<Record<LoginEvent, string>>> = {
  "setup-done": "login.setup_done",
  "login-started": "login.started",
  "login-proven": "login.completed",
  "login-failed": "login.failed",
  "login-cancelled": "login.cancelled",
  "login-timed-out": "login.timed_out",
  "login-abandoned": "login.abandoned",
  refreshed: "login.refreshed",
  "refresh-refused": "login.refresh_refused",
  "refresh-unreachable": "login.refresh_failed",
  "expiry-detected": "cli.auth_expired",
  "logged-out": "login.ended",
}

export const createLedger = ({ data, catalogue, store, record }: LedgerParts): Ledger => {
  const keyOf = ({ driver, workspace, user }: LoginOwner): LoginKey => ({
    tenant: singleHost.tenant,
    driver: driverScope(catalogue, driver),
    workspace,
    user,
  })
  const lockFile = (owner: LoginOwner): string => {
    const { tenant, driver, workspace, user } = keyOf(owner)
    const name = createHash("sha256")
      .update(JSON.stringify([tenant, driver, workspace, user]))
      .digest("hex")
    return join(loginLocksFolder(data), name.slice(0, 32))
  }
  const see = async (owner: LoginOwner): Promise<Seen> =>
    seenBy(owner.driver, await (await store()).login(keyOf(owner)))

  const note = async ({ driver, workspace, user, actor }: LoginOwner, action: string, metadata: JsonObject = {}) => {
    await record({
      actor: { id: actor },
      action,
      subject: { kind: "login", ref: driver.key.slice(0, 256) },
      metadata: {
        driver: driver.key,
        ...(action === "cli.auth_expired" ? { cli_id: driver.contract.id } : {}),
        user_id: user,
        workspace_id: workspace,
        ...metadata,
      },
    })
  }

  const move: Ledger["move"] = async (owner, events, change = (facts) => facts) => {
    for (let tries = 0; tries < loginLimits.changes.value; tries += 1) {
      const seen = await see(owner)
      const state = afterAll(seen.state, events)
      if (state === undefined) return undefined
      const facts = change(seen.facts)
      const changed = await (await store()).changeLogin(keyOf(owner), seen.generation, { state, facts })
      if (changed === undefined) continue
      for (const event of events) {
        const action = rows[event]
        if (action === undefined) continue
        const { account, failure } = facts
        const why = seen.facts.failure === failure || failure === undefined ? {} : { reason: failure.message }
        await note(owner, action, { state, ...(account === undefined ? {} : { account }), ...why })
      }
      return { state, facts, generation: changed.generation, foreign: false }
    }
    throw new Error("the login is changed by others without end")
  }

  const settle: Ledger["settle"] = async (owner) => {
    const seen = await see(owner)
    if (seen.state !== "logging-in") return seen
    return (await move(owner, ["login-abandoned"])) ?? (await see(owner))
  }

  return Object.freeze({
    keyOf,
    see,
    move,
    note,
    records: async () => (await store()).logins(singleHost.tenant),
    settle,
    turn: (owner: LoginOwner, wait: TurnWait) => fileLock(lockFile(owner), wait),
    settleIfIdle: async (owner: LoginOwner) => {
      const seen = await see(owner)
      if (seen.state !== "logging-in") return seen
      using turn = tryFileLock(lockFile(owner))
      return turn === undefined ? seen : await settle(owner)
    },
  })
}
