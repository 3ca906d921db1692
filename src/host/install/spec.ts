/**
 * A request for packages → one that can be built, with the key that it is remembered by. Pure.
 *
 * Guarantees: names are names of a registry and versions are ranges; an address, a path, an alias or an option never
 * reaches a package manager. Two requests with one key have the same result, as far as a registry keeps to its word:
 * the key holds the packages, the registry, the language's version and the machine's kind.
 */
import { createHash } from "node:crypto"
import { parseRange } from "../../manifest/schema/version.ts"
import { shown } from "../../manifest/values/diagnostics.ts"
import { parsePackage } from "../../manifest/values/package-name.ts"
import { installLimits } from "../limits.ts"
import { notHere } from "./failures.ts"
import type { InstallAnswer, MethodSpec, PackageRequest } from "./types.ts"

type FromRegistry = Extract<MethodSpec, { packages: unknown }>

const FORMAT = 1
/** npm's tags (`latest`, `next-1`) */
const TAG = /^[a-z][a-z0-9._-]{0,63}$/i
const PIP_RANGE = /^(?:===?|~=|!=|<=?|>=?)[A-Za-z0-9*.!+_-]+(?:,(?:===?|~=|!=|<=?|>=?)[A-Za-z0-9*.!+_-]+)*$/

/** npm's range for pip: each alternative of one comparison becomes pip's own words; undefined where there are none. */
const pipRange = (version: string): string | undefined => {
  const plain = version.trim()
  if (PIP_RANGE.test(plain)) return plain
  if (/^\d[A-Za-z0-9.!+_-]*$/.test(plain)) return `==${plain}`
  const parsed = parseRange(plain)
  if (!parsed.ok || parsed.range.includes("||")) return undefined
  const parts = parsed.range.split(/\s+/).map((part) => {
    const [, operator = "", number = ""] = /^(\^|~|>=|<=|>|<|=)?v?([0-9][A-Za-z0-9.*-]*)$/.exec(part) ?? []
    if (number === "") return undefined
    if (operator === "^" || operator === "~") return caret(operator, number)
    return operator === "" || operator === "=" ? `==${number.replace(/\.x$/, ".*")}` : `${operator}${number}`
  })
  return parts.includes(undefined) ? undefined : parts.join(",")
}

const caret = (operator: "^" | "~", version: string): string | undefined => {
  const numbers = version.split(".").map(Number)
  if (numbers.some((number) => !Number.isInteger(number))) return undefined
  const first = numbers.findIndex((number) => number > 0)
  const at = operator === "~" ? Math.min(1, numbers.length - 1) : first === -1 ? numbers.length - 1 : first
  const upper = numbers.slice(0, at + 1)
  upper[at] = (upper[at] ?? 0) + 1
  return `>=${version},<${upper.join(".")}`
}

/** The one word that names it to its manager; undefined where it cannot be named. */
const requirementOf = (source: FromRegistry["source"], { name, version }: PackageRequest): string | undefined => {
  if (parsePackage(source, name)?.name !== name) return undefined
  if (version === undefined) return name
  if (source === "pip") {
    const range = pipRange(version)
    return range === undefined ? undefined : `${name}${range}`
  }
  if (source === "npm") return TAG.test(version) || parseRange(version).ok ? `${name}@${version}` : undefined
  const written = `${name}${source === "apt" ? "=" : "@"}${version}`
  return parsePackage(source, written)?.version === version ? written : undefined
}

interface Request {
  readonly key: string
  /** for people: `cowsay@^1.6` */
  readonly what: string
  readonly requirements: readonly string[]
}

export const requestOf = (
  { source, packages }: FromRegistry,
  registry: string,
  language: string,
): InstallAnswer<Request> => {
  if (packages.length === 0 || packages.length > installLimits.packages.value)
    return notHere(
      `a layer holds 1 to ${installLimits.packages.value} packages, not ${packages.length}`,
      "name the packages that the driver needs",
    )
  const requirements: string[] = []
  for (const each of packages) {
    const requirement = requirementOf(source, each)
    if (requirement === undefined)
      return notHere(
        `\`${shown(each.name, 60)}${each.version === undefined ? "" : ` ${shown(each.version, 60)}`}\` is not a package and a version of ${source}`,
        "write the name that its registry knows and a version range; no address, no path, no alias",
      )
    requirements.push(requirement)
  }
  requirements.sort()
  const facts = [FORMAT, source, requirements, registry, language, process.platform, process.arch]
  return {
    ok: true,
    value: {
      key: createHash("sha256").update(JSON.stringify(facts)).digest("hex"),
      what: shown(requirements.join(", "), 120),
      requirements,
    },
  }
}
