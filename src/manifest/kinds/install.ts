/**
 * `install[]` (AIP-29 §Install) → recipes in the author's order, each usable or kept with the reason why not.
 *
 * Guarantees: an unknown, experimental, malformed or placeholder-hashed method never fails the manifest in compat mode
 * and is never usable (C-30; a placeholder is not "no hash"), and what is not usable has no recipe, so that nobody can run
 * it. What is fetched has the hash it must have, or none at all, which whoever installs must be allowed to take. Strict
 * mode refuses placeholders and downloads without a hash. Does not: install anything.
 */
import { readAddress } from "../values/address.ts"
import type { Context } from "../values/context.ts"
import { createReport, joinPath, shown } from "../values/diagnostics.ts"
import { flag, isObject, optionalText, text } from "../values/fields.ts"
import { checkShape } from "../schema/shape.ts"
import type { Diagnostic, JsonObject, JsonValue } from "../base-types.ts"
import { type PackageMethod, type PackageName, parsePackage } from "../values/package-name.ts"

export type InstallRecipe =
  | ({ readonly method: Exclude<PackageMethod, "npm" | "pip"> } & PackageName)
  | ({ readonly method: "npm"; readonly global: boolean } & PackageName)
  | ({ readonly method: "pip"; readonly user: boolean } & PackageName)
  /** a script that is run once its hash is right */
  | { readonly method: "curl"; readonly url: string; readonly sha256?: string }
  /** a program, or an archive with the program at `extractBin` */
  | { readonly method: "download"; readonly url: string; readonly extractBin: string; readonly sha256?: string }
  /** comes with the manifest; relative to its folder */
  | { readonly method: "vendored"; readonly path: string }

export type InstallMethod =
  | ({ readonly usable: true } & InstallRecipe)
  | { readonly usable: false; readonly method: string; readonly reason: string }

const PACKAGES = ["brew", "apt", "dnf", "pacman", "choco", "scoop", "npm", "pip", "cargo", "go"] as const
const KNOWN = [...PACKAGES, "curl", "download", "vendored"]
const SHA256 = /^[a-f0-9]{64}$/
/** `000…0`, `0123…` over and over: what nobody's file has. */
const REPEATED = /^(.{1,32})\1+$/
const isHash = (value: JsonValue): boolean => typeof value === "string" && SHA256.test(value) && !REPEATED.test(value)

export interface InstallSplit {
  readonly methods: readonly InstallMethod[]
  /** the methods that the schema should judge */
  readonly checked: readonly JsonValue[]
}

const climbs = (path: string): boolean =>
  path.startsWith("/") || path.includes("\0") || path.split("/").includes("..") || path === ""

function malformed(entry: JsonObject, path: string): Diagnostic | undefined {
  const report = createReport("")
  checkShape("install", entry, report, path)
  return report.diagnostics[0]
}

interface Fault {
  readonly rule: string
  readonly key: string
  readonly message: string
  readonly fix: string
}

/** What a method of the right shape says to do, or what stands in the way. */
function recipeOf(entry: JsonObject): InstallRecipe | Fault {
  const method = text(entry, "method")
  const manager = PACKAGES.find((known) => known === method)
  if (manager !== undefined) {
    const named = parsePackage(manager, text(entry, "package"))
    if (named === undefined)
      return {
        rule: "install-package",
        key: "package",
        message: `\`${shown(text(entry, "package"), 60)}\` is not the name of a package of ${manager}`,
        fix: "write the name that its registry knows, perhaps with a version; no address and no path",
      }
    if (manager === "npm") return { method: manager, global: flag(entry, "global"), ...named }
    if (manager === "pip") return { method: manager, user: flag(entry, "user"), ...named }
    return { method: manager, ...named }
  }
  if (method === "vendored") return { method, path: text(entry, "path") }
  const address = readAddress(text(entry, "url"))
  if (!address.ok || address.url.protocol !== "https:")
    return {
      rule: "install-url",
      key: "url",
      message: address.ok ? "a download must come by `https://`" : address.message,
      fix: "write the full `https://…` address",
    }
  if (/\$\{|%7[bB]|%3[cC]|\.\.\./.test(address.url.href) || address.text.includes("${"))
    return {
      rule: "install-url-placeholder",
      key: "url",
      message: `\`${shown(address.text)}\` holds a placeholder; the method is unusable until it is an address`,
      fix: "write the full address of one file",
    }
  const sha256 = optionalText(entry, "verify_sha256")
  const fetched = { url: address.url.href, ...(sha256 === undefined ? {} : { sha256 }) }
  if (method === "curl") return { method, ...fetched }
  const extractBin = text(entry, "extract_bin")
  if (climbs(extractBin))
    return {
      rule: "path-escape",
      key: "extract_bin",
      message: `\`${shown(extractBin)}\` is not a path inside the archive`,
      fix: "write a relative path without `..`",
    }
  return { method: "download", extractBin, ...fetched }
}

/** Undefined when there is no list to split; the schema then says what is wrong. */
export function splitInstall(value: JsonValue | undefined, context: Context): InstallSplit | undefined {
  if (!Array.isArray(value)) return undefined
  const checked: JsonValue[] = []
  const methods = (value as readonly JsonValue[]).flatMap((entry, i): InstallMethod[] => {
    if (isObject(entry) && text(entry, "method") !== "")
      return readMethod(entry, joinPath("install", i), checked, context)
    checked.push(entry)
    return []
  })
  return { methods, checked }
}

function readMethod(entry: JsonObject, path: string, checked: JsonValue[], context: Context): InstallMethod[] {
  const { report, mode } = context
  const method = text(entry, "method")
  const unusable = (reason: string): InstallMethod[] => [{ usable: false, method, reason }]
  if (!KNOWN.includes(method)) {
    report.warn(
      "install-unknown-method",
      `${path}.method`,
      `the install method \`${shown(method, 30)}\` is not known and is skipped`,
      `use one of ${KNOWN.join(", ")}`,
    )
    return unusable("unknown install method")
  }
  const hash = entry["verify_sha256"]
  if (hash !== undefined && !isHash(hash) && (mode === "compat" || (typeof hash === "string" && SHA256.test(hash)))) {
    const say = mode === "strict" ? report.error : report.lenient
    say(
      "install-hash-placeholder",
      `${path}.verify_sha256`,
      "this is no SHA-256; the method is unusable until it is",
      "write the 64 lower case hex digits of the file's SHA-256",
    )
    return unusable("its hash is a placeholder")
  }
  const broken = malformed(entry, path)
  if (broken !== undefined && mode === "compat") {
    report.lenient("install-malformed", broken.path, `${broken.message}; the method is skipped`, broken.fix)
    return unusable(`it is malformed: ${broken.message}`)
  }
  checked.push(entry)
  if (broken !== undefined) return unusable(`it is malformed: ${broken.message}`)
  if (flag(entry, "experimental")) {
    report.warn(
      "install-experimental",
      path,
      "an experimental install method is skipped",
      "remove `experimental` once it is reliable",
    )
    return unusable("experimental")
  }
  if ((method === "curl" || method === "download") && hash === undefined) {
    const say = mode === "strict" ? report.error : report.warn
    say(
      "install-no-hash",
      path,
      `\`${method}\` without \`verify_sha256\` would run whatever the server sends; hosts refuse it unless told otherwise`,
      "add `verify_sha256`",
    )
  }
  if (method === "vendored" && climbs(optionalText(entry, "path") ?? "")) {
    report.error(
      "path-escape",
      `${path}.path`,
      "a vendored program must lie inside the manifest's folder",
      "write a relative path without `..`",
    )
    return []
  }
  const recipe = recipeOf(entry)
  if (!("rule" in recipe)) return [{ usable: true, ...recipe }]
  if (mode === "strict") report.error(recipe.rule, `${path}.${recipe.key}`, recipe.message, recipe.fix)
  else report.lenient(recipe.rule, `${path}.${recipe.key}`, `${recipe.message}; the method is skipped`, recipe.fix)
  return unusable(recipe.message)
}
