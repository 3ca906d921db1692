/**
 * Does a condition of a grant hold for this call, now? Pure.
 *
 * Guarantees: what cannot be told does not hold: a condition that is not known here, an address where there is none.
 * Hours are those of the condition's own time zone, Monday to Friday from nine to five; an address is the one at the other
 * end of the connection, whatever a request says of itself.
 */
import { BlockList, isIP } from "node:net"
import type { GrantCondition } from "../../manifest/types.ts"
import type { WhoActs } from "./caller.ts"

const WORKDAYS: readonly string[] = ["Mon", "Tue", "Wed", "Thu", "Fri"]
const OPENS = 9
const CLOSES = 17

const isDuringHours = (timeZone: string, now: number): boolean => {
  const parts = new Intl.DateTimeFormat("en-US", { timeZone, weekday: "short", hour: "2-digit", hourCycle: "h23" })
    .formatToParts(now)
    .reduce<Record<string, string>>((all, { type, value }) => ({ ...all, [type]: value }), {})
  const hour = Number(parts["hour"])
  return WORKDAYS.includes(parts["weekday"] ?? "") && hour >= OPENS && hour < CLOSES
}

/** `::ffff:10.0.0.1` is `10.0.0.1`. */
const plain = (address: string): string => /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address)?.[1] ?? address
const familyOf = (address: string): "ipv4" | "ipv6" => (isIP(address) === 4 ? "ipv4" : "ipv6")

const isInRange = (range: { readonly address: string; readonly prefix: number }, given: string): boolean => {
  const address = plain(given)
  if (isIP(address) === 0) return false
  const list = new BlockList()
  list.addSubnet(range.address, range.prefix, familyOf(range.address))
  return list.check(address, familyOf(address))
}

export const canTell = ({ kind }: GrantCondition): boolean => kind === "during-business-hours" || kind === "ip-range"

export const conditionHolds = (
  condition: GrantCondition,
  { address }: Pick<WhoActs, "address">,
  now: number,
): boolean => {
  switch (condition.kind) {
    case "during-business-hours":
      return isDuringHours(condition.timezone, now)
    case "ip-range":
      return address !== undefined && isInRange(condition, address)
    default:
      return false
  }
}
