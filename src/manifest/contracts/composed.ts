/**
 * A driver that is composed by `code` and `run` (AIP-26) → a driver of kind sdk whose module lies in a bundle; and a CODE.md
 * that serves tools by itself → such a driver.
 *
 * Guarantees: what cannot be composed here is told by name and never serves; no driver is run without the parts that its
 * author wrote. What a CODE.md says of runner, network and secrets holds for the driver that names it, and is narrowed by
 * what that says itself, never widened (C-48). Pure.
 */
import type { Context } from "../values/context.ts"
import { checkCredentials } from "../values/credentials.ts"
import { shown } from "../values/diagnostics.ts"
import { intersectEgress, parseEgressEntry } from "../values/egress-entry.ts"
import { isObject, object, objects, optionalObject, optionalText, texts, without } from "../values/fields.ts"
import type { CodeBundle } from "../code-bundle.ts"
import type { JsonObject, JsonValue } from "../base-types.ts"
import { readRun } from "./code-run.ts"
import { type CodeFault, codeOf, readSources } from "./code-sources.ts"

type Composed =
  | { readonly ok: true; readonly front: JsonObject; readonly bundle: CodeBundle }
  | { readonly ok: false; readonly front: JsonObject; readonly fault: CodeFault }

const PACKAGE_KEYS = ["package", "package_manager", "package_version", "entrypoint", "import_style", "install"]

const entriesOf = (texts: readonly string[]) =>
  texts.flatMap((text) => {
    const parsed = parseEgressEntry(text)
    return parsed.ok ? [parsed.entry] : []
  })

/** Of two that say it, what both let through. */
const narrowedNetwork = (own: JsonValue | undefined, given: JsonValue | undefined): JsonValue | undefined => {
  if (!isObject(given)) return own
  if (!isObject(own)) return given
  const both = intersectEgress(entriesOf(texts(own, "egress")), entriesOf(texts(given, "egress")))
  return { ...own, egress: both.map(({ text }) => text) }
}

const LIMITS = ["memory_mb", "timeout_ms", "cpu_ms"]

const narrowedRunner = (own: JsonValue | undefined, given: JsonValue | undefined): JsonValue | undefined => {
  if (given === undefined) return own
  if (own === undefined) return given
  if (!isObject(own) || !isObject(given)) return own
  const [mine, theirs] = [object(own, "limits"), object(given, "limits")]
  const least = LIMITS.flatMap((name) => {
    const said = [mine[name], theirs[name]].filter((value) => typeof value === "number")
    return said.length === 0 ? [] : [[name, Math.min(...said)]]
  })
  return { ...given, ...own, ...(least.length === 0 ? {} : { limits: Object.fromEntries(least) as JsonObject }) }
}

/** The name that a variable's secret has where nobody says another. */
const slugOf = (name: string): string => name.toLowerCase().replaceAll("_", "-")

/** `secrets` of a CODE.md as a driver's `auth`; undefined: this host cannot bind them so. */
const authOf = (secrets: JsonObject): JsonObject | undefined => {
  const ref = optionalText(secrets, "ref") ?? optionalText(secrets, "file")
  if (ref !== undefined) return { ref, state: { paths: [], env: [] } }
  const names = Object.entries(secrets)
  const isPlain = names.every(([name, bound]) => isObject(bound) && bound["vault"] === slugOf(name))
  return isPlain ? { state: { paths: [], env: names.map(([name]) => name) } } : undefined
}

const fault = (path: string, message: string, fix: string): CodeFault => ({ path, message, fix })

type Inherited = { readonly ok: true; readonly front: JsonObject } | { readonly ok: false; readonly fault: CodeFault }

/** The driver with what the CODE.md files say that it names. */
const inherited = (front: JsonObject, named: readonly JsonObject[]): Inherited => {
  let made = front
  const refuse = (message: string, fix: string): Inherited => ({ ok: false, fault: { path: "code", message, fix } })
  for (const code of named) {
    if (code["sandbox"] !== undefined)
      return refuse("its CODE.md names a sandbox (AIP-36), which no driver gets here", "take `sandbox` out of it")
    const network = narrowedNetwork(made["network"], code["network"])
    const runner = narrowedRunner(made["runner"], code["runner"])
    const secrets = optionalObject(code, "secrets")
    const auth = secrets === undefined || made["auth"] !== undefined ? made["auth"] : authOf(secrets)
    if (secrets !== undefined && auth === undefined)
      return refuse(
        "its CODE.md binds secrets under names of its own",
        "write `NAME: { vault: name }`, or name a SECRETS.md by `secrets: { ref: ./SECRETS.md }`",
      )
    made = {
      ...made,
      ...(network === undefined ? {} : { network }),
      ...(runner === undefined ? {} : { runner }),
      ...(auth === undefined ? {} : { auth }),
    }
  }
  return { ok: true, front: made }
}

/** Each entry calls the file's default function, unless it says another. */
const withFunctions = (front: JsonObject): JsonValue =>
  objects(front, "implements").map((entry) => {
    const metadata = object(entry, "metadata")
    const sdk = object(metadata, "sdk")
    return { ...entry, metadata: { ...metadata, sdk: { function_ref: "default", ...sdk } } }
  })

/** Undefined: the driver is composed of nothing. */
export const compose = (front: JsonObject, context: Context): Composed | undefined => {
  if (front["code"] === undefined && front["run"] === undefined) return undefined
  const plain = without(front, ["code", "run"])
  const kind = front["kind"]
  const shape = kind === "sdk" ? { ...plain, implements: withFunctions(plain) } : plain
  const refuse = (wrong: CodeFault): Composed => ({ ok: false, front: shape, fault: wrong })
  if (kind !== "sdk")
    return refuse(fault("kind", `a driver of kind ${shown(kind, 20)} is composed of no code here`, "write `kind: sdk`"))
  const twice = PACKAGE_KEYS.find((key) => front[key] !== undefined)
  if (twice !== undefined)
    return refuse(
      fault(
        twice,
        `\`${twice}\` and \`${front["run"] === undefined ? "code" : "run"}\` are given at once`,
        `remove \`${twice}\`: the bundle is the package`,
      ),
    )
  const run = readRun(front["run"])
  if (!run.ok)
    return refuse(
      fault(
        "run",
        `\`run\` cannot be served: ${run.why}`,
        "write the file whose default function is called, as in `run: tool.ts` or `run: tool.py`",
      ),
    )
  const walk = { context, file: context.file, way: [context.file] }
  // Without `code` the manifest's own folder is the bundle.
  const read = readSources(front["code"] ?? { sources: [{ local: "." }] }, "code", walk)
  if (!read.ok) return refuse(read.fault)
  const made = inherited(plain, read.named)
  if (!made.ok) return refuse(made.fault)
  return {
    ok: true,
    bundle: { sources: read.sources, run: run.file },
    front: {
      ...made.front,
      package_manager: "local",
      package: run.file,
      import_style: run.style,
      implements: withFunctions(made.front),
    },
  }
}

/** `@owner/code/notion-search` is known as `notion-search`. */
export const codeId = (front: JsonObject): string => {
  const written = optionalText(front, "id") ?? optionalText(front, "name") ?? ""
  return written.slice(written.lastIndexOf("/") + 1)
}

/** Which tools a CODE.md says that it serves; undefined: it leaves that to whoever names it. */
export const servedBy = (front: JsonObject): readonly JsonObject[] | undefined => {
  const inline = optionalObject(object(front, "driver"), "inline")
  return inline === undefined ? undefined : objects(inline, "implements")
}

/** A CODE.md as the driver that it is. `entries`: the tools that it serves, as `implements[]` has them. */
export const driverOfCode = (front: JsonObject, entries: readonly JsonObject[], context: Context): JsonObject => {
  checkCredentials(front, context.report)
  const inline = object(object(front, "driver"), "inline")
  const id = codeId(front)
  const own = Object.fromEntries(
    ["runner", "network", "sandbox", "secrets"].flatMap((key) => (front[key] === undefined ? [] : [[key, front[key]]])),
  ) as JsonObject
  const base: JsonObject = {
    kind: "sdk",
    ...inline,
    id,
    name: optionalText(front, "name") ?? id,
    description: optionalText(front, "description") ?? `the code of ${id}`,
    version: optionalText(front, "version") ?? "1.0.0",
    implements: entries,
    ...(codeOf(front) === undefined ? {} : { code: codeOf(front) as JsonValue }),
    ...(front["run"] === undefined ? {} : { run: front["run"] }),
  }
  const made = inherited(base, [own])
  if (made.ok) return made.front
  context.report.error("driver-code", made.fault.path, made.fault.message, made.fault.fix)
  return base
}
