/**
 * The word by which a login's callback is known: the `state` that a provider sends back with a person's browser.
 *
 * Guarantees: signed under a key that never leaves the process, bound to one driver, workspace and user, good for a time
 * by the machine's own clock, and once. What does not fit is told by a word, and uses nothing up.
 */
import { createHash, createHmac, randomBytes, timingSafeEqual } from "node:crypto"
import type { LoginKey } from "../../store/store.ts"

export type CallbackFault = "malformed" | "forged" | "foreign" | "late" | "used"

const tupleOf = ({ tenant, driver, workspace, user }: LoginKey): Buffer =>
  createHash("sha256")
    .update(JSON.stringify([tenant, driver, workspace, user]))
    .digest()

const NONCE = 16
const TIME = 8
const MAC = 32

export class CallbackTokens {
  readonly #key = randomBytes(32)
  readonly #used = new Map<string, number>()
  readonly #now: () => number
  /** milliseconds that only go forward */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }
  #sign(head: Buffer, key: LoginKey): Buffer {
    return createHmac("sha256", this.#key).update(head).update(tupleOf(key)).digest()
  }
  issue(key: LoginKey, forMs: number): string {
    const until = Buffer.alloc(TIME)
    until.writeDoubleBE(this.#now() + forMs)
    const head = Buffer.concat([randomBytes(NONCE), until])
    return Buffer.concat([head, this.#sign(head, key), tupleOf(key)]).toString("base64url")
  }
  /** Undefined: it fits, and does not fit again. */
  redeem(token: string, key: LoginKey): CallbackFault | undefined {
    const bytes = Buffer.from(token, "base64url")
    if (bytes.length !== NONCE + TIME + MAC + MAC || bytes.toString("base64url") !== token) return "malformed"
    const head = bytes.subarray(0, NONCE + TIME)
    const mac = bytes.subarray(NONCE + TIME, NONCE + TIME + MAC)
    if (!timingSafeEqual(bytes.subarray(NONCE + TIME + MAC), tupleOf(key))) return "foreign"
    if (!timingSafeEqual(mac, this.#sign(head, key))) return "forged"
    const now = this.#now()
    for (const [nonce, until] of this.#used) if (until < now) this.#used.delete(nonce)
    const until = head.readDoubleBE(NONCE)
    if (now > until) return "late"
    const nonce = head.subarray(0, NONCE).toString("hex")
    if (this.#used.has(nonce)) return "used"
    this.#used.set(nonce, until)
    return undefined
  }
}
