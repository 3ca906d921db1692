/**
 * One driver against the registered contracts: every `implements[]` entry holds, or the driver is refused.
 *
 * Guarantees: an entry is bound to each registered major of its tool that its version range takes, with its templates
 * compiled; one entry that does not hold refuses the whole driver (AIP-30 §5), with the first error as the reason and
 * all of them as diagnostics. Pure.
 */
import { hasFiles } from "../../manifest/contracts/file-contract.ts"
import { checkEntry } from "../../manifest/contracts/binding.ts"
import type { Diagnostic, DriverContract, Implementation, ToolContract } from "../../manifest/types.ts"
import { satisfies } from "../../manifest/schema/version.ts"
import type { Binding, DriverKindModule } from "../drivers/kind.ts"
import { kindOf } from "../drivers/kinds.ts"
import { isTransform, transformNames } from "../invoke/mapping.ts"
import type { Refusal } from "./types.ts"

/** Version, narrowing, mapping and overrides of one entry against one contract; the entry as it is to be read (C-34). */
export type CheckEntry = typeof checkEntry

interface Bound {
  readonly bindings: readonly Binding[]
  readonly refusal?: Refusal
  readonly diagnostics: readonly Diagnostic[]
}

const isError = (diagnostic: Diagnostic): boolean => diagnostic.severity === "error"

/** Those that are not the host's come with a driver's own module, or from elsewhere where its kind has any. */
const unknownTransforms = (driver: DriverContract, index: number): readonly Diagnostic[] =>
  Object.entries(driver.implements[index]?.mapping ?? {}).flatMap(([key, { transform }]): readonly Diagnostic[] => {
    // Whether a driver's module has it is known once a sandbox looked into it.
    if (transform === undefined || isTransform(transform) || driver.code !== undefined) return []
    const message = `there is no transform \`${transform}\``
    return [
      {
        severity: kindOf(driver)?.bringsTransforms === false ? "error" : "warning",
        rule: "unknown-transform",
        file: driver.source.file,
        path: `implements[${index}].mapping.${key}`,
        message,
        fix: `use one of ${transformNames.join(", ")}`,
      },
    ]
  })

/** A contract's files (AIP-16) are handed over on this machine. */
const outOfReach = (driver: DriverContract, index: number, tool: ToolContract): readonly Diagnostic[] => {
  if (!hasFiles(tool) || kindOf(driver)?.reachesFiles?.(driver) !== false) return []
  return [
    {
      severity: "error",
      rule: "files-out-of-reach",
      file: driver.source.file,
      path: `implements[${index}].tool`,
      message: `\`${tool.id}\` exchanges files, and this driver runs nothing here that could reach them`,
      fix: "give the driver an `execute` of its own, or serve the tool by a program or module that runs here",
    },
  ]
}

/** An entry of a kind that this host does not run holds by what every kind has in common. */
const bindEntry: DriverKindModule["bind"] = (driver, index, tool, implementation) =>
  kindOf(driver)?.bind(driver, index, tool, implementation) ?? {
    binding: { tool, implementation, needs: [] },
    diagnostics: [],
  }

/** What can be wrong with an entry's tool before any contract is looked at in detail. */
const missingTool = (
  driver: DriverContract,
  index: number,
  entry: Implementation,
  same: readonly ToolContract[],
): Diagnostic => {
  const versions = same.map((tool) => tool.version).join(", ")
  const at = { severity: "error", file: driver.source.file } as const
  if (same.length === 0) {
    return {
      ...at,
      rule: "tool-not-registered",
      path: `implements[${index}].tool`,
      message: `there is no tool \`${entry.tool}\``,
      fix: "correct the id, or register its TOOL.md",
    }
  }
  return {
    ...at,
    rule: "tool-version-out-of-range",
    path: `implements[${index}].version`,
    message: `\`${entry.tool}\` is registered as ${versions}, which \`${entry.major === undefined ? entry.versionRange : `${entry.toolRef} ${entry.versionRange}`}\` does not take`,
    fix: `write a range that takes ${versions}`,
  }
}

const isMeant = (entry: Implementation, tool: ToolContract): boolean =>
  tool.id === entry.tool &&
  (entry.major === undefined || entry.major === tool.major) &&
  satisfies(tool.version, entry.versionRange)

/** The first error, as the reason why a driver can never serve a call. */
export const refusalOf = (diagnostics: readonly Diagnostic[]): Refusal | undefined => {
  const first = diagnostics.find(isError)
  if (first === undefined) return undefined
  return {
    code: "manifest_invalid",
    reason: `${first.path === "" ? "" : `${first.path}: `}${first.message}`,
    fix: first.fix,
  }
}

export const bindDriver = (
  driver: DriverContract,
  tools: readonly ToolContract[],
  check: CheckEntry = checkEntry,
): Bound => {
  const diagnostics: Diagnostic[] = []
  const bindings: Binding[] = []
  for (const [index, entry] of driver.implements.entries()) {
    const same = tools.filter((tool) => tool.id === entry.tool)
    const fitting = same.filter((tool) => isMeant(entry, tool))
    if (fitting.length === 0) {
      const fault = missingTool(driver, index, entry, same)
      // A driver for two majors of a tool serves the one that is registered.
      const other = driver.implements.some((each) => each !== entry && same.some((tool) => isMeant(each, tool)))
      diagnostics.push(other ? { ...fault, severity: "warning" } : fault)
    }
    diagnostics.push(...unknownTransforms(driver, index))
    for (const tool of fitting) {
      diagnostics.push(...outOfReach(driver, index, tool))
      const checked = check(driver, index, tool)
      const compiled = bindEntry(driver, index, tool, checked.implementation)
      diagnostics.push(...checked.diagnostics, ...compiled.diagnostics)
      bindings.push(Object.freeze(compiled.binding))
    }
  }
  const refusal = refusalOf(diagnostics)
  return refusal === undefined ? { bindings, diagnostics } : { bindings: [], refusal, diagnostics }
}
