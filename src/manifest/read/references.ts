/**
 * References between manifests that lead nowhere: warnings, because what they name may be registered elsewhere, and
 * because the host fails closed on each of them when a call comes.
 *
 * Does not: look at the tools a driver implements; binding a driver reports those. Pure.
 */
import { dirname, join } from "node:path"
import type { Catalogue } from "./catalogue.ts"
import { isPathRef } from "../values/context.ts"
import { createReport, joinPath, shown } from "../values/diagnostics.ts"
import { policySlug } from "../contracts/policy.ts"
import { matchSecretSlug } from "../contracts/secrets.ts"
import type { Diagnostic, DriverContract, ToolContract } from "../types.ts"

interface Known {
  readonly tools: ReadonlySet<string>
  readonly drivers: ReadonlySet<string>
  readonly secrets: ReadonlySet<string>
  readonly policies: ReadonlySet<string>
  readonly secretFiles: ReadonlySet<string>
}

function checkToolReferences(tool: ToolContract, known: Known): readonly Diagnostic[] {
  const report = createReport(tool.source.file)
  if (tool.approval.class === "policy" && !known.policies.has(policySlug(tool.approval.ref))) {
    report.warn(
      "policy-ref-unresolvable",
      "approval",
      `the policy \`${shown(tool.approval.ref)}\` is not among the manifests; a person is asked instead`,
      "add its POLICY.md, or write `approval: always`",
    )
  }
  if (tool.defaultImplementation !== undefined && !known.drivers.has(tool.defaultImplementation)) {
    report.warn(
      "driver-ref-unresolvable",
      "default_implementation",
      `there is no driver \`${shown(tool.defaultImplementation)}\` among the manifests`,
      "add its DRIVER.md or CODE.md, or correct the id",
    )
  }
  tool.requires.tools.forEach((id, i) => {
    if (!known.tools.has(id))
      report.warn(
        "tool-ref-unresolvable",
        joinPath("requires.tools", i),
        `there is no tool \`${shown(id)}\` among the manifests`,
        "add its TOOL.md, or correct the id",
      )
  })
  tool.requires.secrets.forEach((name, i) => {
    if (matchSecretSlug(name, known.secrets) === undefined)
      report.warn(
        "secret-ref-unresolvable",
        joinPath("requires.secrets", i),
        `no SECRETS.md among the manifests declares \`${shown(name)}\``,
        "declare it, or correct the name",
      )
  })
  return report.diagnostics
}

/** Beside the driver, or from a folder above it, as its folder of manifests is (C-61); the file, or its folder. */
function leadsToSecrets(from: string, ref: string, files: ReadonlySet<string>): boolean {
  for (let base = dirname(from); ; base = dirname(base)) {
    const paths = [join(base, ref), join(base, ".secrets", ref)]
    if (paths.some((path) => files.has(path) || files.has(join(path, "SECRETS.md")))) return true
    if (base === dirname(base)) return false
  }
}

function checkDriverReferences(driver: DriverContract, known: Known): readonly Diagnostic[] {
  const report = createReport(driver.source.file)
  const ref = driver.auth?.ref
  if (ref !== undefined && isPathRef(ref) && !leadsToSecrets(driver.source.file, ref, known.secretFiles)) {
    report.warn(
      "secret-ref-unresolvable",
      "auth.ref",
      `\`${shown(ref)}\` leads to no SECRETS.md among the manifests`,
      "add it, or correct the path",
    )
  }
  return report.diagnostics
}

/** A login that no driver has. */
function checkProvider(file: string, drivers: readonly DriverContract[]): readonly Diagnostic[] {
  if (drivers.some(({ auth }) => auth?.provider?.source.file === file)) return []
  const report = createReport(file)
  report.warn(
    "auth-unused",
    "",
    "no driver among the manifests logs in by it",
    "put it beside a driver that has an `auth` block, or name its path in that driver's `auth.ref`",
  )
  return report.diagnostics
}

/** The SECRETS.md and AUTH.md files that loaded, by path. */
export function checkReferences(
  catalogue: Omit<Catalogue, "diagnostics">,
  {
    secretFiles,
    providerFiles,
  }: { readonly secretFiles: ReadonlySet<string>; readonly providerFiles: readonly string[] },
): readonly Diagnostic[] {
  const known: Known = {
    tools: new Set(catalogue.tools.map((tool) => tool.id)),
    drivers: new Set(catalogue.drivers.map((driver) => driver.id)),
    secrets: new Set(catalogue.secrets.map((secret) => secret.slug)),
    policies: new Set(
      catalogue.policies.filter((policy) => policy.dialect === "governance").map((policy) => policy.id),
    ),
    secretFiles,
  }
  return [
    ...catalogue.tools.flatMap((tool) => checkToolReferences(tool, known)),
    ...catalogue.drivers.flatMap((driver) => checkDriverReferences(driver, known)),
    ...providerFiles.flatMap((file) => checkProvider(file, catalogue.drivers)),
  ]
}
