/**
 * What real drivers get wrong, kind by kind, mended in compat mode and refused in strict mode; and faults that have
 * a clearer name than a schema can give. Each function takes front matter and gives front matter.
 */
import { withoutVersion } from "../values/ends.ts"
import type { Context } from "../values/context.ts"
import { shown } from "../values/diagnostics.ts"
import { coversName, parseEgressEntry } from "../values/egress-entry.ts"
import { isObject, object, objects, optionalText, text, texts, without } from "../values/fields.ts"
import type { JsonObject } from "../base-types.ts"
import type { CodeBundle } from "../code-bundle.ts"
import { compose } from "./composed.ts"

interface Mended {
  readonly front: JsonObject
  readonly bundle?: CodeBundle
  readonly unusable?: string
  /** the shape is so far off that a schema would only add noise */
  readonly stop?: true
}

/** http without `base_url`: derived from the only exact host, else the driver can never serve. */
function mendHttp(front: JsonObject, context: Context): Mended {
  const base = optionalText(front, "base_url")
  if (base?.includes("${")) {
    context.report.error(
      "http-base-url",
      "base_url",
      "`base_url` depends on the input; a driver talks to one fixed host",
      "write the fixed address, and put what varies into `endpoint`",
    )
  }
  const hosts = texts(object(front, "network"), "egress").flatMap((entry) => {
    const parsed = parseEgressEntry(entry)
    return parsed.ok ? [parsed.entry] : []
  })
  if (front["base_url"] !== undefined || context.mode === "strict") {
    const host = base === undefined ? undefined : URL.parse(base)?.hostname
    if (host !== undefined && !hosts.some((entry) => coversName(entry, host))) {
      context.report.warn(
        "base-url-not-in-egress",
        "network.egress",
        `\`${shown(host)}\`, the host of \`base_url\`, is not in \`network.egress\`; it cannot be reached`,
        `add \`${shown(host)}\``,
      )
    }
    return { front }
  }
  const [only] = hosts
  if (hosts.length === 1 && only !== undefined && !only.wildcard && only.protocol === "web") {
    const port = only.ports.includes(443) ? "" : `:${only.ports[0] ?? 443}`
    const url = `https://${only.text.replace(/:\d+$/, "")}${port}`
    context.report.lenient(
      "http-base-url-derived",
      "base_url",
      `\`base_url\` is missing; taken as \`${url}\` from the only egress host`,
      `add \`base_url: ${url}\``,
    )
    return { front: { ...front, base_url: url } }
  }
  context.report.lenient(
    "http-base-url-missing",
    "base_url",
    "`base_url` is missing and cannot be told from `network.egress`; the driver cannot serve calls",
    "add `base_url:`",
  )
  return { front: { ...front, base_url: "https://unset.invalid" }, unusable: "its `base_url` is missing" }
}

function mendMcp(front: JsonObject, context: Context): Mended {
  const old = ["server_ref", "mcp_tools"].filter(
    (name) => front[name] !== undefined || object(front, "metadata")[name] !== undefined,
  )
  for (const key of old) {
    context.report.error(
      "mcp-old-shape",
      key,
      `\`${key}\` is the older shape of an mcp driver and is not read`,
      "write `server: { kind, … }`, `transport`, and `metadata.mcp.tool_name` in each `implements[]` entry (AIP-32)",
    )
  }
  return old.length > 0 ? { front, stop: true } : { front }
}

const MANAGER_METHOD: Readonly<Record<string, string>> = {
  npm: "npm",
  pnpm: "npm",
  yarn: "npm",
  pip: "pip",
  poetry: "pip",
  cargo: "cargo",
  go: "go",
  local: "vendored",
}
const bareName = (spec: string): string => withoutVersion(spec).replace(/[=<>~!^].*$/, "")

function checkSdk(front: JsonObject, context: Context): Mended {
  const manager = text(front, "package_manager")
  const wanted = Object.hasOwn(MANAGER_METHOD, manager) ? MANAGER_METHOD[manager] : undefined
  objects(front, "install").forEach((entry, i) => {
    const method = text(entry, "method")
    if (wanted !== undefined && method !== wanted) {
      context.report.error(
        "sdk-package-manager",
        `install[${i}].method`,
        `\`${shown(method, 30)}\` does not fit \`package_manager: ${manager}\``,
        `write \`method: ${wanted}\``,
      )
    }
    const named = optionalText(entry, "package")
    if (named !== undefined && bareName(named) !== bareName(text(front, "package"))) {
      context.report.warn(
        "sdk-package-differs",
        `install[${i}].package`,
        `installs \`${shown(named, 60)}\` while \`package\` is \`${shown(text(front, "package"), 60)}\``,
        "name the same package in both",
      )
    }
  })
  return { front }
}

function mendCli(front: JsonObject, context: Context): Mended {
  const sandbox = front["sandbox"]
  if (!isObject(sandbox)) return { front }
  if (sandbox["provider"] !== undefined) {
    context.report.error(
      "sandbox-provider",
      "sandbox.provider",
      "this is a sandbox of AIP-36 (`provider`); a cli driver declares the one of AIP-29",
      "write `sandbox: { fs, exec, env }` here, and name the provider under `runner`",
    )
    return { front, stop: true }
  }
  const forms = ["inline", "ref", "file"].filter((form) => sandbox[form] !== undefined)
  if (forms.length > 1)
    context.report.error(
      "one-form-only",
      "sandbox",
      `\`sandbox\` has ${forms.join(" and ")} at once`,
      "keep one of them",
    )
  if (forms.length === 1 && isObject(sandbox["inline"])) return { front: { ...front, sandbox: sandbox["inline"] } }
  if (forms.length === 1) {
    context.report.error(
      "sandbox_ref_unresolvable",
      `sandbox.${forms[0] ?? ""}`,
      "a sandbox by reference cannot be resolved here, and there is no default",
      "write the sandbox inline",
    )
    return { front, stop: true }
  }
  return { front }
}

/** An empty command is no command (C-32). */
function dropEmptyCommands(front: JsonObject): JsonObject {
  const auth = front["auth"]
  if (!isObject(auth)) return front
  const mended = { ...auth }
  for (const part of ["login", "refresh"]) {
    const block = auth[part]
    if (isObject(block) && block["cmd"] === "") mended[part] = without(block, ["cmd"])
  }
  return { ...front, auth: mended }
}

/** What cannot be composed here is told by name and never serves: without its parts it would be another driver. */
export function mendDriver(written: JsonObject, context: Context): Mended {
  const composed = compose(written, context)
  if (composed === undefined) return mendKind(written, context)
  if (composed.ok) return { ...mendKind(composed.front, context), bundle: composed.bundle }
  const { path, message, fix } = composed.fault
  if (context.mode === "strict") context.report.error("driver-code", path, message, fix)
  else context.report.lenient("driver-code", path, message, fix)
  // What stands for its package is never looked for.
  const stand: JsonObject = { package: "unset", package_manager: "local", ...composed.front }
  return {
    ...mendKind(composed.front["kind"] === "sdk" ? stand : composed.front, context),
    unusable: `it is composed by \`code\` and \`run\` (AIP-26), and cannot be: ${message}`,
  }
}

function mendKind(written: JsonObject, context: Context): Mended {
  const front = dropEmptyCommands(written)
  switch (front["kind"]) {
    case "http":
      return mendHttp(front, context)
    case "mcp":
      return mendMcp(front, context)
    case "sdk":
      return checkSdk(front, context)
    case "cli":
      return mendCli(front, context)
    default:
      return { front }
  }
}
