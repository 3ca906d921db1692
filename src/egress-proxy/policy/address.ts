/**
 * IP addresses as values, and which of them are public.
 *
 * Guarantees: `parseIp` accepts strict dotted quads and RFC 4291 IPv6 text without a zone, and nothing else; an
 * `IpAddress` carries its one canonical spelling (RFC 5952). `classify` is total: what no row of the table and not
 * 2000::/3 covers is `reserved`. Pure; own bit arithmetic, no regular expression on untrusted length.
 */
import { isIPv4, isIPv6 } from "node:net"
import type { AddressClass } from "./reasons.ts"

declare const brand: unique symbol
export interface IpAddress {
  readonly [brand]: "IpAddress"
  readonly family: 4 | 6
  /** canonical text, without brackets */
  readonly text: string
  /** 16-bit groups: two for IPv4, eight for IPv6 */
  readonly groups: readonly number[]
}

const make = (family: 4 | 6, groups: readonly number[], text: string) =>
  Object.freeze({ family, groups, text }) as unknown as IpAddress

export function parseIp(text: string): IpAddress | undefined {
  if (text.length > 45) return undefined
  if (isIPv4(text)) {
    const groups = quadGroups(text)
    return make(4, groups, quadText(groups))
  }
  if (!text.includes(":") || text.includes("%") || !isIPv6(text)) return undefined
  const groups = sixGroups(text.toLowerCase())
  return make(6, groups, sixText(groups))
}

function quadGroups(text: string): readonly number[] {
  const [a = 0, b = 0, c = 0, d = 0] = text.split(".").map(Number)
  return [(a << 8) | b, (c << 8) | d]
}

function quadText([high = 0, low = 0]: readonly number[]): string {
  return `${high >> 8}.${high & 255}.${low >> 8}.${low & 255}`
}

function sixGroups(text: string): readonly number[] {
  const side = (part: string): number[] =>
    part === ""
      ? []
      : part.split(":").flatMap((group) => (group.includes(".") ? quadGroups(group) : [Number.parseInt(group, 16)]))
  const gap = text.indexOf("::")
  if (gap < 0) return side(text)
  const head = side(text.slice(0, gap))
  const tail = side(text.slice(gap + 2))
  return [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail]
}

function sixText(groups: readonly number[]): string {
  let best = { start: -1, length: 1 }
  for (let start = 0; start < 8; start += 1) {
    let end = start
    while (end < 8 && groups[end] === 0) end += 1
    if (end - start > best.length) best = { start, length: end - start }
    if (end > start) start = end
  }
  const hex = (part: readonly number[]) => part.map((group) => group.toString(16)).join(":")
  if (best.start < 0) return hex(groups)
  return `${hex(groups.slice(0, best.start))}::${hex(groups.slice(best.start + best.length))}`
}

export interface Cidr {
  readonly text: string
  readonly network: IpAddress
  readonly bits: number
}

/** `10.0.0.0/8`: canonical only; host bits must be zero. */
export function parseCidr(text: string): Cidr | undefined {
  const match = /^([0-9a-fA-F:.]{2,45})\/(0|[1-9][0-9]{0,2})$/.exec(text)
  const network = match?.[1] === undefined ? undefined : parseIp(match[1])
  const bits = Number(match?.[2])
  if (network === undefined || bits > network.groups.length * 16) return undefined
  const cidr = { text: `${network.text}/${bits}`, network, bits }
  return network.groups.every((group, index) => group === (group & groupMask(bits, index))) ? cidr : undefined
}

function groupMask(bits: number, index: number): number {
  const left = Math.min(16, Math.max(0, bits - index * 16))
  return (0xffff << (16 - left)) & 0xffff
}

export function contains(cidr: Cidr, ip: IpAddress): boolean {
  if (cidr.network.family !== ip.family) return false
  for (let index = 0; index * 16 < cidr.bits; index += 1) {
    const mask = groupMask(cidr.bits, index)
    if (((ip.groups[index] ?? 0) & mask) !== ((cidr.network.groups[index] ?? 0) & mask)) return false
  }
  return true
}

type ListedClass = Exclude<AddressClass, "self">

/** Reserved ranges; the first row that covers an address names its class. */
const table: readonly (readonly [ListedClass, string])[] = [
  ["metadata", "169.254.169.254/32 169.254.170.2/32 169.254.170.23/32 100.100.100.200/32 168.63.129.16/32"],
  ["metadata", "fd00:ec2::254/128 fd00:ec2::23/128 fd20:ce::254/128"],
  ["unspecified", "0.0.0.0/8 ::/128"],
  ["loopback", "127.0.0.0/8 ::1/128"],
  ["link_local", "169.254.0.0/16 fe80::/10"],
  ["embedded_v4", "::ffff:0:0/96 ::ffff:0:0:0/96 ::/96 64:ff9b::/96 64:ff9b:1::/48 2002::/16 2001::/32"],
  ["private", "10.0.0.0/8 172.16.0.0/12 192.168.0.0/16 fc00::/7 fec0::/10"],
  ["shared", "100.64.0.0/10"],
  ["documentation", "192.0.2.0/24 198.51.100.0/24 203.0.113.0/24 2001:db8::/32 3fff::/20"],
  ["benchmark", "198.18.0.0/15 2001:2::/48"],
  ["protocol_assignment", "192.0.0.0/24 192.88.99.0/24 2001::/23"],
  ["multicast", "224.0.0.0/4 ff00::/8"],
  ["reserved", "240.0.0.0/4 100::/64 5f00::/16"],
]

const cidr = (text: string): Cidr => {
  const parsed = parseCidr(text)
  if (parsed === undefined) throw new Error(`bad row in the address table: ${text}`)
  return parsed
}
const rows = table.flatMap(([name, list]) => list.split(" ").map((text) => ({ class: name, cidr: cidr(text) })))
export const reservedRanges: readonly { readonly class: ListedClass; readonly cidr: Cidr }[] = rows
const rows4 = rows.filter((row) => row.cidr.network.family === 4)
const rows6 = rows.filter((row) => row.cidr.network.family === 6)
const globalUnicast = cidr("2000::/3")

export function classify(ip: IpAddress): ListedClass | "public" {
  if (ip.family === 4) return rows4.find((row) => contains(row.cidr, ip))?.class ?? "public"
  const listed = rows6.find((row) => contains(row.cidr, ip))?.class
  if (listed !== undefined) return listed
  if (isIsatap(ip)) return "embedded_v4"
  return contains(globalUnicast, ip) ? "public" : "reserved"
}

/** Interface identifiers `0:5efe:a.b.c.d` and `200:5efe:a.b.c.d`, whatever the prefix. */
function isIsatap(ip: IpAddress): boolean {
  return ((ip.groups[4] ?? 0) & 0xfdff) === 0 && ip.groups[5] === 0x5efe
}
