/**
 * Small readers for the fields of a config file. Each takes a JSON value and its path, and gives a value or reports.
 *
 * Guarantees: an unknown key is an error that names the nearest known one; nothing is coerced. Pure.
 */
import ipaddr from "ipaddr.js"
import { joinPath, nearest, type Report, shown } from "../../manifest/diagnostics.ts"
import type { JsonValue } from "../../manifest/types.ts"

export type Field<T> = (value: JsonValue, path: string, report: Report) => T | undefined
/** A fault found in a value: what is wrong, and what to write. */
type Fault = readonly [message: string, fix: string]

const wrong = (report: Report, path: string, [message, fix]: Fault): undefined => {
  report.error("config-value", path, message, fix)
  return undefined
}

export const oneOf =
  <const T extends string>(...words: readonly T[]): Field<T> =>
  (value, path, report) =>
    words.find((word) => word === value) ??
    wrong(report, path, [`\`${shown(value)}\` is not one of ${words.join(", ")}`, `write ${words.join(" or ")}`])

export const flag: Field<boolean> = (value, path, report) =>
  typeof value === "boolean"
    ? value
    : wrong(report, path, [`\`${shown(value)}\` is not true or false`, "write true or false"])

/** A string that `parse` turns into the wanted value, or a fault. */
export const text =
  <T = string>(parse: (value: string) => T | { readonly fault: Fault }): Field<T> =>
  (value, path, report) => {
    if (typeof value !== "string")
      return wrong(report, path, [
        `\`${shown(value)}\` is not text`,
        "write it as text, quoted if it looks like a number",
      ])
    const parsed = parse(value)
    return typeof parsed === "object" && parsed !== null && "fault" in parsed
      ? wrong(report, path, parsed.fault)
      : parsed
  }

export const whole =
  (least: number, most: number, scale = 1): Field<number> =>
  (value, path, report) =>
    typeof value === "number" && Number.isSafeInteger(value) && value >= least && value <= most
      ? value * scale
      : wrong(report, path, [
          `\`${shown(value)}\` is not a whole number from ${least} to ${most}`,
          `write a whole number from ${least} to ${most}`,
        ])

export const share: Field<number> = (value, path, report) =>
  typeof value === "number" && value > 0 && value <= 1024
    ? value
    : wrong(report, path, [`\`${shown(value)}\` is not a number of cores`, "write a number above 0, such as 0.5 or 2"])

export const list =
  <T>(item: Field<T>): Field<readonly T[]> =>
  (value, path, report) => {
    if (!Array.isArray(value))
      return wrong(report, path, ["this is not a list", "write a list: `[a, b]`, or one `- a` a line"])
    const items = (value as readonly JsonValue[]).map((entry, index) => item(entry, joinPath(path, index), report))
    return items.includes(undefined) ? undefined : Object.freeze(items as T[])
  }

const isMapping = (value: JsonValue): value is { readonly [key: string]: JsonValue } =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** A mapping with free keys, each judged by `key`. */
export const dictionary =
  <T>(key: (name: string) => Fault | undefined, item: Field<T>): Field<Readonly<Record<string, T>>> =>
  (value, path, report) => {
    if (!isMapping(value)) return wrong(report, path, ["this is not a mapping", "write `name: value` lines"])
    const result: Record<string, T> = {}
    for (const [name, entry] of Object.entries(value)) {
      const fault = key(name)
      if (fault !== undefined) wrong(report, joinPath(path, name), fault)
      const parsed = item(entry, joinPath(path, name), report)
      if (parsed !== undefined) result[name] = parsed
    }
    return Object.freeze(result)
  }

/** A mapping with known keys, all optional; what is absent or wrong is left out of the result. */
export const record =
  <T extends object>(
    fields: { readonly [K in keyof T]-?: readonly [yamlKey: string, field: Field<NonNullable<T[K]>>] },
  ): Field<Partial<T>> =>
  (value, path, report) => {
    if (!isMapping(value)) return wrong(report, path, ["this is not a mapping", "write `name: value` lines"])
    const named = Object.entries(fields) as [string, readonly [string, Field<unknown>]][]
    const known = named.map(([, [yamlKey]]) => yamlKey)
    const result: Record<string, unknown> = {}
    for (const key of Object.keys(value)) {
      if (known.includes(key)) continue
      const near = nearest(key, known)
      report.error(
        "config-unknown-key",
        joinPath(path, key),
        `there is no setting \`${shown(key)}\`${near === undefined ? "" : `; did you mean \`${near}\`?`}`,
        near === undefined ? `known here: ${known.join(", ")}` : `write \`${near}\``,
      )
    }
    for (const [property, [yamlKey, field]] of named) {
      const entry = value[yamlKey]
      if (entry === undefined || entry === null) continue
      const parsed = field(entry, joinPath(path, yamlKey), report)
      if (parsed !== undefined) result[property] = parsed
    }
    return result as Partial<T>
  }

/** `127.0.0.1:5432` or `[::1]:5432` */
export const addressAndPort = text<{ readonly address: string; readonly port: number }>((value) => {
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([0-9.]+)):([0-9]{1,5})$/.exec(value)
  const address = match?.[1] ?? match?.[2] ?? ""
  const port = Number(match?.[3])
  const valid =
    match !== null &&
    port >= 1 &&
    port <= 65_535 &&
    (match[1] === undefined ? ipaddr.IPv4.isValidFourPartDecimal(address) : ipaddr.IPv6.isValid(address))
  return valid
    ? { address: ipaddr.parse(address).toString(), port }
    : {
        fault: [
          `\`${shown(value)}\` is not an address and a port`,
          "write an IP address and a port, such as 127.0.0.1:5432 or [::1]:5432",
        ],
      }
})

/** A CIDR block in canonical text: no bits set beyond its prefix. */
export const cidr = text<string>((value) => {
  const fault = {
    fault: [`\`${shown(value)}\` is not a CIDR block`, "write a network and its prefix, such as 10.20.0.0/16"],
  } as const
  if (!/^[0-9a-fA-F.:]+\/\d{1,3}$/.test(value) || !ipaddr.isValidCIDR(value)) return fault
  const [address, prefix] = ipaddr.parseCIDR(value)
  const network =
    address.kind() === "ipv4" ? ipaddr.IPv4.networkAddressFromCIDR(value) : ipaddr.IPv6.networkAddressFromCIDR(value)
  const canonical = `${network.toString()}/${prefix}`
  if (prefix === 0)
    return { fault: [`\`${shown(value)}\` grants every address`, "name the private network that tools may reach"] }
  return network.toString() === address.toString()
    ? canonical
    : { fault: [`\`${shown(value)}\` has bits beyond its prefix`, `write ${canonical}`] }
})
