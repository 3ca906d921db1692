/**
 * Addresses that stand for names inside a sandbox, from 198.18.0.0/15 (set aside for benchmarks, never routed).
 *
 * Guarantees: within one instance a name keeps its address and an address means one name; what was never handed out
 * means nothing. Neighbouring generations draw from separate blocks, so that an address a program kept from before a
 * policy change is `stale`, not another name. 198.18.0.0, 198.18.0.1 (the sandbox's own) and every address ending in
 * .0 or .255 are left out. At the cap `addressFor` is undefined, before anything is stored.
 * Assumes: names are canonical; the caller decided that the name is declared.
 * Does not: expire anything: an instance lives as long as its policy generation.
 */

export interface SyntheticAddresses {
  addressFor(name: string): string | undefined
  /** also for the mapped spelling `::ffff:198.18.x.y` a dual-stack listener reports */
  nameFor(address: string): string | undefined
  /** an address of the range that means nothing in this instance */
  stale(address: string): boolean
}

const lastOctets = 254
/** .0.1 is the sandbox's own address; slot 0 is 198.18.0.2 */
const firstSlot = 1
const poolSize = 512 * lastOctets - firstSlot
export const syntheticCap = 4096

export function createSyntheticAddresses(
  options: { readonly generation?: number; readonly cap?: number } = {},
): SyntheticAddresses {
  const generation = options.generation ?? 0
  if (!Number.isSafeInteger(generation) || generation < 0) throw new RangeError("a generation is a count")
  const cap = Math.min(options.cap ?? syntheticCap, poolSize)
  if (!Number.isSafeInteger(cap) || cap < 1) throw new RangeError("a cap is at least one")
  const first = (generation % Math.floor(poolSize / cap)) * cap
  const addresses = new Map<string, string>()
  const names = new Map<string, string>()
  return {
    addressFor(name) {
      const known = addresses.get(name)
      if (known !== undefined || addresses.size >= cap) return known
      const address = addressOfSlot(first + addresses.size)
      addresses.set(name, address)
      names.set(address, name)
      return address
    },
    nameFor: (address) => names.get(unmapped(address)),
    stale: (address) => isSynthetic(address) && !names.has(unmapped(address)),
  }
}

/** whether an address, plain or mapped, lies in 198.18.0.0/15 */
export function isSynthetic(address: string): boolean {
  return /^198\.1[89]\.(?:[0-9]{1,3})\.(?:[0-9]{1,3})$/.test(unmapped(address))
}

const unmapped = (address: string): string => (address.startsWith("::ffff:") ? address.slice(7) : address)

function addressOfSlot(slot: number): string {
  const position = slot + firstSlot
  const block = Math.floor(position / lastOctets)
  return `198.${18 + (block >> 8)}.${block & 0xff}.${1 + (position % lastOctets)}`
}
