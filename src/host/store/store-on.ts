/** The store's verbs on an engine: which tables each uses, and what it asks of the engine. */
import { answerAsked, ask, askedOf, takeAnswer } from "./asked.ts"
import { admitCall, callsOf, findCall, forgetCalls, openCalls, settleCall } from "./calls.ts"
import { grantsOf, makeGrant, revokeGrant, useGrant } from "./grants.ts"
import { claim, findHeld, heldOf, hold, receipted, release, settle } from "./held.ts"
import { changeLogin, findLogin, loginsOf } from "./logins.ts"
import { acceptOffer, offered, offersOf } from "./offers.ts"
import { lookAtPace, pausePace, takeTurn } from "./paces.ts"
import { spend } from "./spent.ts"
import { type CallRetention, type Store, StoreUnavailable } from "./store.ts"
import { issueToken, revokeToken, tokenBy, tokensOf } from "./tokens.ts"
import type { Engine } from "./verb.ts"

/** What ended long ago is looked for at most so often. */
const FORGET_MS = 60_000

/** `most`: settled held calls that are remembered. */
export const storeOn = (engine: Engine, most: number): Store => {
  const { owner } = engine
  let forgotMs = Number.NEGATIVE_INFINITY
  const forget = async (atMs: number, keep: CallRetention): Promise<void> => {
    if (Math.abs(atMs - forgotMs) < FORGET_MS) return
    forgotMs = atMs
    try {
      await engine.repeatable(() => forgetCalls(atMs, keep))
    } catch (error) {
      // What was settled is settled; the next one tries again.
      if (!(error instanceof StoreUnavailable)) throw error
      forgotMs = Number.NEGATIVE_INFINITY
    }
  }
  return {
    owner,
    admit: (call) => engine.repeatable(() => admitCall(call, owner)),
    async settleCall(call, ended, keep) {
      await engine.repeatable(() => settleCall(call, owner, ended))
      await forget(ended.endedMs, keep)
    },
    call: (id) => engine.read(() => findCall(id)),
    openCalls: () => engine.read(() => openCalls(owner)),
    calls: (filter) => engine.read(() => callsOf(filter)),
    issueToken: (token) => engine.write(() => issueToken(token)),
    token: (hash) => engine.read(() => tokenBy(hash)),
    tokens: (tenant) => engine.read(() => tokensOf(tenant)),
    revokeToken: (tenant, id, atMs) => engine.write(() => revokeToken(tenant, id, atMs)),
    login: (key) => engine.read(() => findLogin(key)),
    logins: (tenant) => engine.read(() => loginsOf(tenant)),
    changeLogin: (key, generation, change) => engine.write(() => changeLogin(key, generation, change)),
    turn: (turn) =>
      turn.rate === undefined ? engine.read(() => lookAtPace(turn)) : engine.write(() => takeTurn(turn)),
    pause: (pause) => engine.write(() => pausePace(pause)),
    ask: (question, bounds) => engine.write(() => ask(question, bounds)),
    asked: (tenant, atMs) => engine.read(() => askedOf(tenant, atMs)),
    answerAsked: (tenant, id, answer, by, atMs) => engine.write(() => answerAsked(tenant, id, answer, by, atMs)),
    takeAnswer: (tenant, id) => engine.write(() => takeAnswer(tenant, id)),
    offered: (offer) => offered(engine, offer),
    offers: (tenant, subject) => engine.read(() => offersOf(tenant, subject)),
    acceptOffer: (acceptance) => engine.write(() => acceptOffer(acceptance)),
    hold: (call, bounds) => engine.write(() => hold(owner, call, bounds)),
    held: (id) => engine.read(() => findHeld(owner, id)),
    heldList: (filter) => engine.read(() => heldOf(owner, filter)),
    receipted: (id, receipt) => engine.write(() => receipted(owner, id, receipt)),
    claim: (id, decision, by, at) => engine.write(() => claim(owner, id, decision, by, at)),
    release: (id, number) => engine.write(() => release(owner, id, number)),
    settle: (id, number, outcome, ended) => engine.write(() => settle(owner, id, number, outcome, most, ended)),
    grant: (grant, bounds) => engine.write(() => makeGrant(grant, bounds)),
    grants: (filter) => engine.read(() => grantsOf(filter)),
    revokeGrant: (tenant, id, atMs) => engine.write(() => revokeGrant(tenant, id, atMs)),
    useGrant: (tenant, id, at) => engine.write(() => useGrant(tenant, id, at)),
    spend: (spending) =>
      spending.look === true ? engine.read(() => spend(spending)) : engine.write(() => spend(spending)),
    [Symbol.asyncDispose]: () => engine[Symbol.asyncDispose](),
  }
}
