/**
 * Checks across manifests: what was discovered → what may be registered.
 *
 * Guarantees: an `id@major` (or secret slug, action id, policy id) that two different manifests claim is refused for
 * all of them, so that which file was found first never decides what runs; identical copies count once; a tool only
 * narrows the action it implements. Whatever is refused here is reported and leaves the rest standing; references that
 * lead nowhere are warnings, because what they name may be registered elsewhere. Pure.
 */
import { checkAction } from "../contracts/action.ts"
import { createReport, shown } from "../values/diagnostics.ts"
import { digestOf } from "../values/digest.ts"
import { checkReferences } from "./references.ts"
import { ACTION_FILE } from "../contracts/tool.ts"
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

/** A driver's paths may lead to other tools where its copy stands, so what they led to is part of what it claims. */
export const contentOf = (value: ToolContract | DriverContract | ActionContract | PolicyContract): string =>
  value.kind === "driver" ? digestOf([value.source.digest, value.implements, value.code ?? null]) : value.source.digest

const claim = <T extends ToolContract | DriverContract | ActionContract | PolicyContract>(
  value: T,
  key: string,
): Claim<T> => ({ key, digest: contentOf(value), file: value.source.file, value })

/** `id@major`; `id` alone: the highest major of the folder that owns the id; or the file that declares it. */
export const findAction = (
  ref: string,
  actions: readonly ActionContract[],
  owns: (action: ActionContract) => boolean = () => true,
): ActionContract | undefined => {
  if (ref.startsWith(ACTION_FILE)) return actions.find((action) => action.source.file === ref.slice(ACTION_FILE.length))
  const [, id = ref, major] = /^(.*?)(?:@(\d+))?$/.exec(ref) ?? []
  const same = actions.filter((action) => action.id === id)
  return major === undefined
    ? same.filter(owns).sort((a, b) => majorOf(b.version) - majorOf(a.version))[0]
    : same.find((action) => majorOf(action.version) === Number(major))
}

function checkTool(
  tool: ToolContract,
  actions: readonly ActionContract[],
  owns: (action: ActionContract) => boolean,
  diagnostics: Diagnostic[],
): boolean {
  if (tool.implements === undefined) return true
  const report = createReport(tool.source.file)
  const id = tool.implements.replace(/@\d+$/, "")
  const action = findAction(tool.implements, actions, owns)
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
  } else checkAction(tool, action, report)
  diagnostics.push(...report.diagnostics)
  return !report.failed
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
  ).filter((tool) => checkTool(tool, actions, owns, diagnostics))
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
  const secretFiles = new Set(manifests.filter(isKind("secrets")).map((inventory) => inventory.source.file))
  return Object.freeze({ ...settled, diagnostics: [...diagnostics, ...checkReferences(settled, secretFiles)] })
}
