/**
 * Values of config files that a schema cannot judge: each is a canonical value, or what is wrong and what to write.
 *
 * Guarantees: pure; nothing is coerced, and what is not canonical is refused with its canonical spelling.
 */
import { isAbsolute, resolve } from "node:path"
import ipaddr from "ipaddr.js"
import { readAddress } from "../../manifest/values/address.ts"
import { joinPath, type Report, shown } from "../../manifest/values/diagnostics.ts"
import { type EgressEntry, parseEgressEntry } from "../../manifest/values/egress-entry.ts"

/** What is wrong with a value, and what to write. */
type Fault = { readonly fault: readonly [message: string, fix: string] }
type Parse<T> = (value: string) => T | Fault

const isFault = (value: unknown): value is Fault => typeof value === "object" && value !== null && "fault" in value

/** The values of a list, or of a mapping, that parse; of those that do not, the report has the place and the fault. */
export const parseEach = <T>(values: readonly string[], parse: Parse<T>, path: string, report: Report): readonly T[] =>
  Object.freeze(
    values.flatMap((value, index) => {
      const parsed = parse(value)
      if (!isFault(parsed)) return [parsed]
      report.error("config-value", joinPath(path, index), ...parsed.fault)
      return []
    }),
  )
export const parseMap = <T>(
  values: Readonly<Record<string, string>>,
  parse: (value: string, key: string) => T | Fault,
  path: string,
  report: Report,
): Readonly<Record<string, T>> => {
  const kept: [string, T][] = []
  for (const [key, value] of Object.entries(values)) {
    const parsed = parse(value, key)
    if (isFault(parsed)) report.error("config-value", joinPath(path, key), ...parsed.fault)
    else kept.push([key, parsed])
  }
  return Object.freeze(Object.fromEntries(kept))
}

export const pathFrom =
  (folder: string) =>
  (value: string): string =>
    isAbsolute(value) ? value : resolve(folder, value)

export const egressEntry: Parse<EgressEntry> = (value) => {
  const parsed = parseEgressEntry(value)
  return parsed.ok
    ? parsed.entry
    : { fault: [parsed.message, parsed.fix ?? "write host, host:port, *.host or tcp://host:port"] }
}

export const isServiceName = (name: string): boolean => {
  const parsed = parseEgressEntry(name)
  return parsed.ok && !parsed.entry.wildcard && parsed.entry.text === name && !name.includes(":")
}

/** A registry's address: it names its host by a name, and carries neither credentials nor a query. */
export const webAddress: Parse<string> = (value) => {
  const read = readAddress(value)
  const fault = (message: string): Fault => ({
    fault: [message, "write an address such as https://registry.example.com/npm/"],
  })
  if (!read.ok) return fault(read.message)
  if (read.url.search !== "") return fault(`\`${shown(value)}\` has a query, which no registry's address has`)
  return parseEgressEntry(read.url.hostname).ok ? read.url.href : fault(`\`${shown(value)}\` names no host`)
}

/** `127.0.0.1:5432` or `[::1]:5432` */
export const addressAndPort: Parse<{ readonly address: string; readonly port: number }> = (value) => {
  const [, v6, v4 = "", digits] = /^(?:\[([^\]]+)\]|([0-9.]+)):([0-9]+)$/.exec(value) ?? []
  const address = v6 ?? v4
  const port = Number(digits)
  const isAddress = v6 === undefined ? ipaddr.IPv4.isValidFourPartDecimal(address) : ipaddr.IPv6.isValid(address)
  if (isAddress && port >= 1 && port <= 65_535) return { address: ipaddr.parse(address).toString(), port }
  return {
    fault: [
      `\`${shown(value)}\` is not an address and a port`,
      "write an IP address and a port, such as 127.0.0.1:5432 or [::1]:5432",
    ],
  }
}

/** A CIDR block in canonical text: no bits set beyond its prefix. */
export const cidr: Parse<string> = (value) => {
  if (!ipaddr.isValidCIDR(value))
    return {
      fault: [`\`${shown(value)}\` is not a CIDR block`, "write a network and its prefix, such as 10.20.0.0/16"],
    }
  const [address, prefix] = ipaddr.parseCIDR(value)
  const network =
    address.kind() === "ipv4" ? ipaddr.IPv4.networkAddressFromCIDR(value) : ipaddr.IPv6.networkAddressFromCIDR(value)
  const canonical = `${network.toString()}/${prefix}`
  if (prefix === 0)
    return { fault: [`\`${shown(value)}\` grants every address`, "name the private network that tools may reach"] }
  return network.toString() === address.toString()
    ? canonical
    : { fault: [`\`${shown(value)}\` has bits beyond its prefix`, `write ${canonical}`] }
}
