/**
 * `install[]` (AIP-29 §Install): each method is kept, and marked unusable with the reason where it may not be run.
 *
 * Guarantees: an unknown, experimental, malformed, placeholder-hashed or unhashed-download method never fails the
 * manifest in compat mode and is never usable (C-30; a placeholder is not "no hash"). Strict mode refuses placeholders and
 * downloads without a hash.
 */
import type { Context } from "./context.ts"
import { createReport, joinPath, shown } from "./diagnostics.ts"
import { flag, isObject, optionalText, text } from "./fields.ts"
import { checkShape } from "./shape.ts"
import type { Diagnostic, InstallMethod, JsonObject, JsonValue } from "./types.ts"

const KNOWN = new Set([
  "brew",
  "apt",
  "dnf",
  "pacman",
  "choco",
  "scoop",
  "npm",
  "pip",
  "cargo",
  "go",
  "curl",
  "download",
  "vendored",
])
const SHA256 = /^[a-f0-9]{64}$/

export interface InstallSplit {
  readonly methods: readonly InstallMethod[]
  /** the methods that the schema should judge */
  readonly checked: readonly JsonValue[]
}

function vendoredEscape(entry: JsonObject): boolean {
  const path = optionalText(entry, "path") ?? ""
  return path.startsWith("/") || path.split("/").includes("..")
}

function malformed(entry: JsonObject, path: string): Diagnostic | undefined {
  const report = createReport("")
  checkShape("install", entry, report, path)
  return report.diagnostics[0]
}

/** Undefined when there is no list to split; the schema then says what is wrong. */
export function splitInstall(value: JsonValue | undefined, context: Context): InstallSplit | undefined {
  if (!Array.isArray(value)) return undefined
  const { report, mode } = context
  const checked: JsonValue[] = []
  const methods = (value as readonly JsonValue[]).flatMap((entry, i): InstallMethod[] => {
    const path = joinPath("install", i)
    const method = isObject(entry) ? text(entry, "method") : ""
    if (!isObject(entry) || method === "") {
      checked.push(entry)
      return []
    }
    const unusable = (reason: string): InstallMethod[] => [{ method, usable: false, reason, fields: entry }]
    if (!KNOWN.has(method)) {
      report.warn(
        "install-unknown-method",
        `${path}.method`,
        `the install method \`${shown(method, 30)}\` is not known and is skipped`,
        `use one of ${[...KNOWN].join(", ")}`,
      )
      return unusable("unknown install method")
    }
    const hash = entry["verify_sha256"]
    if (mode === "compat" && hash !== undefined && (typeof hash !== "string" || !SHA256.test(hash))) {
      report.lenient(
        "install-hash-placeholder",
        `${path}.verify_sha256`,
        "this is no SHA-256; the method is unusable until it is",
        "write the 64 lower case hex digits of the file's SHA-256",
      )
      return unusable("its hash is a placeholder")
    }
    const fault = mode === "compat" ? malformed(entry, path) : undefined
    if (fault !== undefined) {
      report.lenient("install-malformed", fault.path, `${fault.message}; the method is skipped`, fault.fix)
      return unusable(`it is malformed: ${fault.message}`)
    }
    checked.push(entry)
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
        `\`${method}\` without \`verify_sha256\` would run whatever the server sends; it is never used`,
        "add `verify_sha256`",
      )
      return unusable("it has no hash")
    }
    if (method === "vendored" && vendoredEscape(entry)) {
      report.error(
        "path-escape",
        `${path}.path`,
        "a vendored program must lie inside the manifest's folder",
        "write a relative path without `..`",
      )
    }
    return [{ method, usable: true, fields: entry }]
  })
  return { methods, checked }
}
