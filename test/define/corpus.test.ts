/**
 * The corpus of manifests through the define functions: what loads as a file loads by code, with an equal contract, and what
 * is refused is refused for the same reason. Where code says something that a file must say itself, the table below has it.
 */
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import * as define from "../../src/define/index.ts"
import { discoverManifests, loadFound } from "../../src/manifest/read/discover.ts"
import { findManifests } from "../../src/manifest/read/find.ts"
import { readFrontmatter } from "../../src/manifest/read/frontmatter.ts"
import { manifestKind } from "../../src/manifest/read/kind.ts"
import type { DefinedManifest } from "../../src/manifest/read/defined.ts"
import type { Diagnostic, JsonObject, LoadResult, Manifest } from "../../src/manifest/types.ts"
import { createReport } from "../../src/manifest/values/diagnostics.ts"

const below = (path: string): string => fileURLToPath(new URL(`../../${path}/`, import.meta.url))

/** What is given to a define function for this front matter: its own names for schemas, and keys as code spells them. */
const camel = (key: string): string => key.replace(/_([a-z0-9])/g, (_, letter: string) => letter.toUpperCase())
const spelled = (front: JsonObject, spelling: "manifest" | "code"): Record<string, unknown> =>
  Object.fromEntries(Object.entries(front).map(([key, value]) => [spelling === "code" ? camel(key) : key, value]))
const asTool = ({ inputs, outputs, ...rest }: Record<string, unknown>): unknown => ({
  ...rest,
  ...(inputs === undefined ? {} : { inputSchema: inputs }),
  ...(outputs === undefined ? {} : { outputSchema: outputs }),
})

const defined = (file: string, front: JsonObject, spelling: "manifest" | "code"): readonly DefinedManifest[] => {
  const given = spelled(front, spelling)
  const options = { module: join(dirname(file), "definitions.ts") }
  switch (manifestKind(file)) {
    case "tool":
      return [define.defineTool(asTool(given) as never, options)]
    case "driver":
      return [define.defineDriver(given as never, options)]
    case "cli":
      return [define.defineCli(given as never, options)]
    case "action":
      return [define.defineAction(given as never, options)]
    case "policy":
      return [define.definePolicy(given as never, options)]
    default:
      return (front["secrets"] as unknown as readonly object[]).map((one) => define.defineSecret(one as never, options))
  }
}

/** The rules that it is refused by, or its contract without where it lies. Other manifests stay files. */
type Told = { readonly refused: readonly string[] } | { readonly contract: unknown }
const refusedBy = (diagnostics: readonly Diagnostic[]): Told => ({
  refused: [...new Set(diagnostics.flatMap(({ severity, rule }) => (severity === "error" ? [rule] : [])))].sort(),
})
/** SECRETS.md has all of them in one; code has a definition for each. */
const partsOf = (manifest: Manifest): readonly Manifest[] =>
  manifest.kind === "secrets" ? manifest.secrets.map((one) => ({ ...manifest, secrets: [one] })) : [manifest]
const told = (results: readonly LoadResult[]): Told => {
  const faults = results.flatMap(({ ok, diagnostics }) => (ok ? [] : diagnostics))
  if (faults.length > 0) return refusedBy(faults)
  const contracts = results.flatMap((result) => (result.ok ? partsOf(result.manifest) : []))
  return { contract: contracts.map((each) => ({ ...each, source: undefined })) }
}
interface Case {
  readonly name: string
  readonly file: string
  readonly front: JsonObject
  readonly told: Told
}
const casesIn = (path: string): readonly Case[] => {
  const root = below(path)
  return discoverManifests([root], { mode: "strict" }).map((result) => {
    const file = result.ok ? result.manifest.source.file : result.file
    const bytes = findManifests([file]).files.get(file)?.()
    const front = typeof bytes === "object" ? readFrontmatter(bytes, createReport(file)) : undefined
    if (front === undefined) throw new Error(`${file} has no front matter`)
    return { name: relative(root, file), file, front, told: told([result]) }
  })
}

/** Every case of a folder by code, what they refer to being files; by the file of each. */
const byCode = (root: string, cases: readonly Case[], spelling: "manifest" | "code"): ReadonlyMap<string, Told> => {
  const made = cases.map(({ file, front }) => {
    try {
      return { file, handles: defined(file, front, spelling) }
    } catch (error) {
      if (!(error instanceof define.ManifestError)) throw error
      return { file, handles: [], refused: refusedBy(error.diagnostics) }
    }
  })
  const found = findManifests(
    [root],
    made.flatMap(({ handles }) => handles),
  )
  const results = new Map(
    loadFound(found, { mode: "strict" }).map((result) => [
      result.ok ? result.manifest.source.file : result.file,
      result,
    ]),
  )
  return new Map(
    made.map(({ file, handles, refused }) => [
      file,
      refused ?? told(handles.flatMap((handle) => results.get(handle.file) ?? [])),
    ]),
  )
}

/** What code says by itself where a file must say it, and what only a list can be wrong in. */
const elsewhere: Readonly<Record<string, string>> = {
  "missing-approval/TOOL.md": "a tool that mutates and says nothing of approval asks (C-8)",
  "action-no-schema/ACTION.md": "defineAction says which schema it is",
  "policy-inline/POLICY.md": "definePolicy says which schema it is",
  "policy-alias/POLICY.md": "definePolicy makes grants, and a rule's keys are none of theirs",
  "policy-unknown/POLICY.md": "definePolicy makes grants, and others' keys are none of theirs",
  "secret-duplicate/SECRETS.md": "each definition is a list of one",
}
/** A key that no manifest of today has is spelled in no way that code would have. */
const unspelled = new Set(["mcp-old/DRIVER.md"])

describe.each(["manifest", "code"] as const)("with keys as a %s spells them", (spelling) => {
  describe.each(["fixtures/manifests/good", "fixtures/manifests/compat", "fixtures/manifests/refused", "manifests"])(
    "%s",
    (path) => {
      const cases = casesIn(path)
      const code = byCode(below(path), cases, spelling)
      it.each(cases.map((one) => [one.name, one] as const))("%s", (name, { file, told: fromFile }) => {
        const own = code.get(file)
        if (Object.hasOwn(elsewhere, name) || (spelling === "code" && unspelled.has(name)))
          expect(own, elsewhere[name]).not.toEqual(fromFile)
        else expect(own).toEqual(fromFile)
      })
    },
  )
})
