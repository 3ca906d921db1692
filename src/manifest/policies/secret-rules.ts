/**
 * What a SECRETS.md entry says about its use (AIP-19): who may have it, what is recorded, how it reaches a process.
 *
 * Guarantees: a rule names exactly one sort of holder; rules and exposures of kinds that are not known are left out and
 * reported (they grant and expose nothing); a file's path stays where it says and its mode is a mode.
 */
import type { Context } from "../values/context.ts"
import { joinPath, shown } from "../values/diagnostics.ts"
import { parseRetention } from "../values/duration.ts"
import {
  defined,
  flag,
  list,
  object,
  objects,
  optionalNumber,
  optionalObject,
  optionalText,
  text,
  texts,
} from "../values/fields.ts"
import type { JsonObject } from "../base-types.ts"

/** Who: a role, a user, a capability (`cap://…`), a tool or a workflow; any rule that fits is enough. */
export interface SecretAccess {
  readonly by: "role" | "user" | "cap" | "tool" | "workflow"
  readonly name: string
}

export interface SecretAudit {
  /** how long its records are kept; absent: as long as all others */
  readonly retentionMs?: number
  readonly pii: boolean
  readonly classification: readonly string[]
}

export type SecretExposure =
  /** `field` of the value where it has several (`accessToken` of an oauth secret); absent: all of it */
  | { readonly kind: "env"; readonly name: string; readonly field?: string }
  | { readonly kind: "file"; readonly path: string; readonly field?: string; readonly mode: number }
  | {
      readonly kind: "egress-substitute"
      /** the tool sees `$$SECRET[NAME]$$` */
      readonly placeholderName: string
      readonly allowedByDefault: boolean
      readonly intendedProviders: readonly string[]
    }

const ACCESS: Readonly<Record<string, SecretAccess["by"]>> = {
  role: "role",
  userId: "user",
  cap: "cap",
  tool: "tool",
  workflow: "workflow",
}
const EXPOSURES = ["env", "file", "egress-substitute"]
const ENV_NAME = /^[A-Z_][A-Z0-9_]*$/

export function readAccess(
  entry: JsonObject,
  key: "reveal" | "bind" | "rotate",
  path: string,
  context: Context,
): readonly SecretAccess[] {
  return objects(object(entry, "access"), key).flatMap((rule, i) => {
    const kind = Object.keys(rule)[0] ?? ""
    const by = Object.hasOwn(ACCESS, kind) ? ACCESS[kind] : undefined
    if (by !== undefined) return [{ by, name: text(rule, kind) }]
    context.report.warn(
      "access-unknown",
      joinPath(`${path}.access.${key}`, i),
      `the access kind \`${shown(kind, 30)}\` is not known; it grants nothing`,
      `use one of ${Object.keys(ACCESS).join(", ")}`,
    )
    return []
  })
}

export function readAudit(entry: JsonObject): SecretAudit | undefined {
  const audit = optionalObject(entry, "audit")
  if (audit === undefined) return undefined
  const retention = optionalText(audit, "retention")
  return defined({
    retentionMs: retention === undefined ? undefined : parseRetention(retention),
    pii: flag(audit, "pii"),
    classification: texts(audit, "classification"),
  })
}

function fileExposure(exposure: JsonObject, at: string, context: Context): readonly SecretExposure[] {
  const path = text(exposure, "path")
  const { report } = context
  if (path === "") {
    report.error("missing-field", `${at}.path`, "a `file` exposure needs a `path`", "add `path:`")
    return []
  }
  if (!/^(?:~\/|\/)[^\0]+$/.test(path) || path.split("/").includes("..") || path.endsWith("/")) {
    report.error(
      "path-escape",
      `${at}.path`,
      `\`${shown(path)}\` is not a file inside the sandbox`,
      "write an absolute path, or one below `~/`, without `..`",
    )
    return []
  }
  const mode = exposure["mode"] === undefined ? 0o600 : (optionalNumber(exposure, "mode") ?? -1)
  if (!Number.isInteger(mode) || mode < 0 || mode > 0o777) {
    report.error("out-of-range", `${at}.mode`, "this is no file mode", "write it in octal, as in `mode: 0o600`")
    return []
  }
  return [defined({ kind: "file" as const, path, field: optionalText(exposure, "field"), mode })]
}

function readExposure(exposure: JsonObject, at: string, context: Context): readonly SecretExposure[] {
  const kind = text(exposure, "kind")
  if (kind === "file") return fileExposure(exposure, at, context)
  const key = kind === "env" ? "name" : "placeholderName"
  const name = text(exposure, key)
  if (!ENV_NAME.test(name)) {
    context.report.error(
      "bad-value",
      `${at}.${key}`,
      `an \`${kind}\` exposure needs a \`${key}\` in capitals`,
      "write a name such as `GH_TOKEN`",
    )
    return []
  }
  if (kind === "env") return [defined({ kind: "env" as const, name, field: optionalText(exposure, "field") })]
  return [
    {
      kind: "egress-substitute",
      placeholderName: name,
      allowedByDefault: flag(exposure, "allowedByDefault"),
      intendedProviders: texts(exposure, "intendedProviders"),
    },
  ]
}

export function readExposures(entry: JsonObject, path: string, context: Context): readonly SecretExposure[] {
  return objects(entry, "exposures").flatMap((exposure, i) => {
    const kind = text(exposure, "kind")
    const at = joinPath(`${path}.exposures`, i)
    if (EXPOSURES.includes(kind)) return readExposure(exposure, at, context)
    context.report.warn(
      "exposure-unknown",
      at,
      `the exposure kind \`${shown(kind, 30)}\` is not known and is ignored`,
      `use one of ${EXPOSURES.join(", ")}`,
    )
    return []
  })
}

/** `metadata.bindings.env`: the variables that get this secret without being asked for by name. */
export function readEnvBindings(entry: JsonObject, path: string, context: Context): readonly string[] {
  const bindings = object(object(entry, "metadata"), "bindings")
  return list(bindings, "env").flatMap((name, i) => {
    if (typeof name === "string" && ENV_NAME.test(name)) return [name]
    context.report.error(
      "bad-value",
      joinPath(`${path}.metadata.bindings.env`, i),
      `\`${shown(name, 40)}\` is not a variable name in capitals`,
      "write a name such as `GH_TOKEN`",
    )
    return []
  })
}
