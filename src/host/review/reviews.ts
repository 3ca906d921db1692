/**
 * What the other side of a driver says of itself, and what was accepted of that.
 *
 * Guarantees: the first word under a name is accepted, as the driver itself was when it was registered; from then on only
 * that word passes, for every process on this data folder, until a person accepts the other one by its digest. A manifest
 * elsewhere that claims the same id has reviews of its own. A word that cannot be digested is refused.
 */
import { digestOf, jcs } from "../../manifest/values/digest.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import type { DriverContract, JsonObject } from "../../manifest/types.ts"
import { originOf } from "../data/homes.ts"
import type { Review } from "../drivers/kind.ts"
import type { Failure } from "../failure.ts"
import { hostLimits } from "../limits.ts"
import { type Offer, singleHost, type Store } from "../store/store.ts"

export interface Reviews {
  of(driver: DriverContract): Review
  /** by name */
  list(driver: DriverContract): Promise<readonly Offer[]>
  /** The offer that is accepted now; undefined where none that waits has this digest. */
  accept(driver: DriverContract, digest: string, by: string): Promise<Offer | undefined>
}

const keyOf = ({ id, major }: DriverContract): string => `${id}@${major}`

const undigested = (name: string): Failure => ({
  ok: false,
  code: "policy_violation",
  message: `what the server says of its tool \`${shown(name, 60)}\` cannot be written down, so that nobody could accept it`,
  details: {},
})

const changed = (driver: string, name: string, offer: Offer): Failure => ({
  ok: false,
  code: "policy_violation",
  message: `the server's tool \`${shown(name, 60)}\` is no longer what was accepted of it: its description or schema changed; nothing was called`,
  hint: `look at \`caisson review ${driver}\`, then accept it with \`caisson review ${driver} --accept ${offer.waiting?.digest ?? ""}\``,
  details: {
    driver,
    tool_name: name.toWellFormed(),
    accepted: offer.accepted.digest,
    offered: offer.waiting?.digest ?? "",
  },
})

export const createReviews = (catalogue: string, store: () => Promise<Store>): Reviews => {
  const subjectOf = (driver: DriverContract): string =>
    digestOf([...originOf(catalogue, driver.source.file), keyOf(driver)])
  const { tenant } = singleHost
  return Object.freeze({
    of: (driver: DriverContract): Review => {
      const subject = subjectOf(driver)
      return async (name: string, word: JsonObject) => {
        let text: string
        try {
          text = jcs(word)
        } catch {
          return undigested(name)
        }
        const digest = digestOf(word)
        const kept = Buffer.byteLength(text) > hostLimits.offerBytes.value ? "" : text
        const { offer, first } = await (await store()).offered({
          tenant,
          subject,
          name,
          word: { digest, text: kept },
          atMs: Date.now(),
        })
        return offer.accepted.digest === digest
          ? { ok: true, value: { digest, first } }
          : changed(keyOf(driver), name, offer)
      }
    },
    list: async (driver: DriverContract) => (await store()).offers(tenant, subjectOf(driver)),
    accept: async (driver: DriverContract, digest: string, by: string) =>
      (await store()).acceptOffer({ tenant, subject: subjectOf(driver), digest, by, atMs: Date.now() }),
  })
}
