/**
 * Checks across manifests: what was discovered → what may be registered.
 *
 * Guarantees: an `id@major` (or secret slug, action id, policy id) that two different manifests claim is refused for
 * all of them, so that which file was found first never decides what runs; identical copies count once; a tool only
 * narrows the action it implements. Whatever is refused here is reported and leaves the rest standing; references that
 * lead nowhere are warnings, because what they name may be registered elsewhere. Pure.
 */
import { ACTION_FILE, ACTION_INLINE } from "../contracts/action-ref.ts"
import { settleAction } from "../contracts/inheritance.ts"
import { dirname, sep } from "node:path"
import { createReport, shown } from "../values/diagnostics.ts"
import { digestOf } from "../values/digest.ts"
import { checkReferences } from "./references.ts"
import type {
  ActionContract,
  Diagnostic,
  DriverContract,
  LoadResult,
  Manifest,
  PolicyContract,
  SecretEntry,
  SecretsInventory,
  ToolContract,
} from "../types.ts"
import { majorOf } from "../schema/version.ts"

export interface Catalogue {
  readonly tools: readonly ToolContract[]
  readonly drivers: readonly DriverContract[]
  readonly secrets: readonly SecretEntry[]
  readonly actions: readonly ActionContract[]
  readonly policies: readonly PolicyContract[]
  /** everything said about the manifests, refused ones included */
  readonly diagnostics: readonly Diagnostic[]
}

interface Claim<T> {
  readonly key: string
  readonly digest: string
  readonly file: string
  readonly value: T
}

/** One value per key; keys with differing claims are dropped whole. */
function settle<T>(what: string, claims: readonly Claim<T>[], diagnostics: Diagnostic[]): readonly T[] {
  const byKey = Map.groupBy(claims, (claim) => claim.key)
  return [...byKey].flatMap(([key, all]) => {
    const [first] = all
    if (first === undefined) return []
    if (all.every((claim) => claim.digest === first.digest)) return [first.value]
    for (const claim of all) {
      const others = all.filter((other) => other.file !== claim.file).map((other) => other.file)
      const report = createReport(claim.file)
      report.error(
        "duplicate-id",
        what === "secret" ? "secrets" : "id",
        `the ${what} \`${shown(key)}\` is also declared in ${others.slice(0, 3).join(", ") || "the same file"}; none of them is registered`,
        "give one of them another id, or remove it",
      )
      diagnostics.push(...report.diagnostics)
    }
    return []
  })
}

/** A driver's paths may lead elsewhere where its copy stands, so what they led to is part of what it claims. */
export const contentOf = (value: ToolContract | DriverContract | ActionContract | PolicyContract): string =>
  value.kind === "driver"
    ? digestOf([
        value.source.digest,
        value.implements,
        value.code ?? null,
        value.bundle ?? null,
        ...(value.auth?.provider === undefined ? [] : [value.auth.provider.source.digest]),
      ])
    : value.source.digest

const claim = <T extends ToolContract | DriverContract | ActionContract | PolicyContract>(
  value: T,
  key: string,
): Claim<T> => ({ key, digest: contentOf(value), file: value.source.file, value })

/** `/m/@acme/actions/.actions/shelf-archive/ACTION.md` is published as `@acme/actions/shelf-archive`. */
const isPublishedAs = ({ source }: ActionContract, name: string): boolean => {
  const folder = dirname(source.file).split(sep)
  return `/${folder.filter((part) => part !== ".actions").join("/")}`.endsWith(`/${name}`)
}

/** The folder of an action is named as its id, with hyphens; a registry's name ends with it. */
const slugOf = ({ id }: ActionContract): string => id.replaceAll(/[:.]/g, "-")

/** By a registry's name: what lies in folders of that name, else what can be meant by its last part alone. */
const published = (name: string, actions: readonly ActionContract[]): readonly ActionContract[] => {
  const there = actions.filter((action) => isPublishedAs(action, name))
  if (there.length > 0) return there
  const alike = actions.filter((action) => slugOf(action) === name.slice(name.lastIndexOf("/") + 1))
  return new Set(alike.map((action) => action.id)).size === 1 ? alike : []
}

/**
 * `id@major`; `id` alone: the highest major of the folder that owns the id; a registry's name, alone or with a major; or
 * the file that declares it. One that a tool brings along is nobody else's.
 */
export const findAction = (
  ref: string,
  actions: readonly ActionContract[],
  owns: (action: ActionContract) => boolean = () => true,
): ActionContract | undefined => {
  if (ref.startsWith(ACTION_INLINE)) return undefined
  if (ref.startsWith(ACTION_FILE)) return actions.find((action) => action.source.file === ref.slice(ACTION_FILE.length))
  const [, id = ref, major] = /^(.+?)(?:@(\d+)(?:\.\d+){0,2})?$/.exec(ref) ?? []
  const same = id.startsWith("@") ? published(id, actions) : actions.filter((action) => action.id === id)
  return major === undefined
    ? same.filter(owns).sort((a, b) => majorOf(b.version) - majorOf(a.version))[0]
    : same.find((action) => majorOf(action.version) === Number(major))
}

/** The tool with what it inherits; none where it does not hold to its action. */
function settleTool(
  tool: ToolContract,
  actions: readonly ActionContract[],
  owns: (action: ActionContract) => boolean,
  diagnostics: Diagnostic[],
): readonly ToolContract[] {
  if (tool.implements === undefined) return [tool]
  const report = createReport(tool.source.file)
  const id = tool.implements.replace(/(?<=.)@\d+(?:\.\d+){0,2}$/, "")
  const action = tool.inlineAction ?? findAction(tool.implements, actions, owns)
  const whole = action === undefined ? tool : settleAction(tool, action, report)
  if (action === undefined) {
    const majors = actions.filter((a) => a.id === id).map((a) => `${id}@${majorOf(a.version)}`)
    report.error(
      "action_ref_unresolvable",
      "implements",
      majors.length > 0
        ? `there is no action \`${shown(tool.implements)}\`; declared are ${shown(majors.join(", "))}`
        : `the action \`${shown(id)}\` is declared in no ACTION.md that was read`,
      majors.length > 0
        ? `check the tool against one of them, then write \`implements: ${shown(majors[0])}\``
        : "add its ACTION.md to the manifest folders, or correct the id",
    )
  } else {
    if (id.startsWith("@") && !isPublishedAs(action, id))
      report.warn(
        "action-by-slug",
        "implements",
        `\`${shown(id)}\` is in no folder of that name; \`${action.id}\` in ${action.source.file} is taken for it`,
        `write \`implements: ${action.id}@${majorOf(action.version)}\`, or put the library below a folder \`${shown(id.slice(0, id.lastIndexOf("/")))}\``,
      )
  }
  diagnostics.push(...report.diagnostics)
  return report.failed ? [] : [whole]
}

const isKind =
  <K extends Manifest["kind"]>(kind: K) =>
  (manifest: Manifest): manifest is Extract<Manifest, { kind: K }> =>
    manifest.kind === kind

/** `owns`: does an action's id without a major mean those of its folder? */
export function buildCatalogue(
  results: readonly LoadResult[],
  owns: (action: ActionContract) => boolean = () => true,
): Catalogue {
  const diagnostics: Diagnostic[] = results.flatMap((result) => result.diagnostics)
  const manifests = results.flatMap((result) => (result.ok ? [result.manifest] : []))
  const actions = settle(
    "action",
    manifests.filter(isKind("action")).map((a) => claim(a, `${a.id}@${majorOf(a.version)}`)),
    diagnostics,
  )
  const tools = settle(
    "tool",
    manifests.filter(isKind("tool")).map((t) => claim(t, `${t.id}@${t.major}`)),
    diagnostics,
  ).flatMap((tool) => settleTool(tool, actions, owns, diagnostics))
  const drivers = settle(
    "driver",
    manifests.filter(isKind("driver")).map((d) => claim(d, `${d.id}@${d.major}`)),
    diagnostics,
  )
  const policies = settle(
    "policy",
    manifests.filter(isKind("policy")).map((p) => claim(p, `${p.dialect}:${p.id}`)),
    diagnostics,
  )
  const secretClaims = manifests.filter(isKind("secrets")).flatMap((inventory: SecretsInventory) =>
    inventory.secrets.map((entry) => ({
      key: entry.slug,
      digest: digestOf(entry),
      file: inventory.source.file,
      value: entry,
    })),
  )
  const secrets = settle("secret", secretClaims, diagnostics)
  const settled = { tools, drivers, secrets, actions, policies }
  const providerFiles = manifests.filter(isKind("auth")).map(({ source }) => source.file)
  const secretFiles = new Set(manifests.filter(isKind("secrets")).map((inventory) => inventory.source.file))
  return Object.freeze({
    ...settled,
    diagnostics: [...diagnostics, ...checkReferences(settled, { secretFiles, providerFiles })],
  })
}
