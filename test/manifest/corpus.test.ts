import { dirname, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { checkEntry } from "../../src/manifest/contracts/binding.ts"
import { buildCatalogue } from "../../src/manifest/read/catalogue.ts"
import { discoverManifests } from "../../src/manifest/read/discover.ts"
import type { LoadResult, ManifestMode } from "../../src/manifest/types.ts"

const root = fileURLToPath(new URL("../../fixtures/manifests/", import.meta.url))
const bundled = fileURLToPath(new URL("../../manifests/", import.meta.url))
const fileOf = (result: LoadResult): string => (result.ok ? result.manifest.source.file : result.file)
const found = (folder: string, mode: ManifestMode): Map<string, LoadResult> =>
  new Map(
    discoverManifests([`${root}${folder}`], { mode }).map((r) => [dirname(relative(`${root}${folder}`, fileOf(r))), r]),
  )
const rules = (result: LoadResult | undefined, severity: string): string[] =>
  [...new Set((result?.diagnostics ?? []).filter((d) => d.severity === severity).map((d) => d.rule))].sort()

describe.each(["compat", "strict"] as const)("the good corpus in %s mode", (mode) => {
  const results = discoverManifests([`${root}good`], { mode })
  it("loads every manifest without a word", () => {
    expect(results.flatMap((r) => r.diagnostics)).toEqual([])
    expect(results.every((r) => r.ok)).toBe(true)
    expect(results.length).toBe(23)
  })
  it("has one of every kind of manifest and of driver", () => {
    const manifests = results.flatMap((r) => (r.ok ? [r.manifest] : []))
    expect(new Set(manifests.map((m) => m.kind))).toEqual(new Set(["tool", "driver", "secrets", "action", "policy"]))
    expect(new Set(manifests.flatMap((m) => (m.kind === "driver" ? [m.body.kind] : [])))).toEqual(
      new Set(["cli", "http", "mcp", "sdk", "builtin"]),
    )
    expect(new Set(manifests.flatMap((m) => (m.kind === "policy" ? [m.dialect] : [])))).toEqual(
      new Set(["grants", "governance"]),
    )
  })
  it("makes a catalogue without faults, in which every driver fits its tools", () => {
    const catalogue = buildCatalogue(results)
    expect(catalogue.diagnostics).toEqual([])
    for (const driver of catalogue.drivers) {
      driver.implements.forEach((entry, i) => {
        const tool = catalogue.tools.find((t) => t.id === entry.tool)
        expect(tool, `${driver.id} → ${entry.tool}`).toBeDefined()
        if (tool !== undefined) expect(checkEntry(driver, i, tool).diagnostics).toEqual([])
      })
    }
  })
  it("freezes what it makes, all the way down", () => {
    const frozen = (value: unknown): boolean =>
      value === null || typeof value !== "object" || (Object.isFrozen(value) && Object.values(value).every(frozen))
    for (const r of results) expect(r.ok && frozen(r.manifest)).toBe(true)
  })
})

it("reads what strict mode accepts the same way in compat mode", () => {
  const read = (mode: ManifestMode): unknown[] =>
    discoverManifests([`${root}good`], { mode }).map((r) => r.ok && { ...r.manifest, source: r.manifest.source.digest })
  expect(read("compat")).toEqual(read("strict"))
})

describe("the compat corpus", () => {
  const compat = found("compat", "compat")
  const strict = found("compat", "strict")
  it.each([
    ["missing-approval", ["approval-missing-with-mutates"], ["approval-missing-with-mutates"]],
    ["auto-with-mutates", ["approval-auto-with-mutates"], ["approval-auto-with-mutates"]],
    ["discouraged", ["tool-discouraged-field"], ["tool-discouraged-field"]],
    ["http-derived", ["http-base-url-derived"], ["missing-field"]],
    ["http-missing", ["http-base-url-missing"], ["missing-field"]],
    [
      "cli-universal",
      ["cli-discouraged", "cli-intents", "cli-sandbox-parts", "cli-universal-keys"],
      ["missing-field", "unknown-key"],
    ],
    ["hash-placeholder", ["install-hash-placeholder"], ["bad-value"]],
    ["no-hash", [], ["install-no-hash"]],
    ["lifted", [], ["tool-ref-unresolvable"]],
    [
      "lifted/tools/run",
      ["argv-lifted", "output-format-lifted", "sandbox-lifted"],
      ["tool-removed-field", "unknown-key"],
    ],
    ["pep440", ["range-dialect"], ["range-dialect"]],
    ["login-url", ["login-url"], ["login-url"]],
    ["docker-engine", ["runner-engine-alias"], ["runner-engine"]],
    ["runtime-block", ["runtime-block"], ["runtime-block"]],
    ["unknown-driver-key", ["unknown-key"], ["unknown-key"]],
    ["policy-segments", ["policy-id-segments"], ["policy-id-segments"]],
    ["policy-inline", ["policy-schema-missing"], ["policy-dialect"]],
    ["policy-alias", ["policy-schema-alias"], ["policy-dialect"]],
  ])(
    "%s: registers in compat mode with its leniencies recorded, is refused in strict mode by name",
    (name, leniencies, refusals) => {
      const lenient = compat.get(name)
      expect(lenient?.ok === true && [...lenient.manifest.source.leniencies].sort()).toEqual(leniencies)
      expect(rules(lenient, "error")).toEqual([])
      expect(strict.get(name)?.ok).toBe(false)
      expect(rules(strict.get(name), "error")).toEqual(refusals)
    },
  )
})

describe.each(["compat", "strict"] as const)("the refused corpus in %s mode", (mode) => {
  const refused = found("refused", mode)
  const expected: Record<string, string[]> = {
    "action-no-schema": ["missing-field"],
    "aip36-sandbox": ["sandbox-provider"],
    "argv-pipe": ["argv-shell"],
    "argv-secret": ["secret-in-argv"],
    "argv-subshell": ["argv-shell"],
    "bad-mutates-class": ["bad-value"],
    "builtin-network": ["builtin-extra"],
    "dotted-id": ["bad-value"],
    "egress-cidr": ["egress-entry"],
    "egress-right-wildcard": ["egress-entry"],
    "egress-star": ["egress-entry"],
    engine: ["runner-engine"],
    "env-secret": ["plaintext-credential"],
    "fs-escape": ["fs-glob"],
    "http-dynamic": ["bad-value", "http-base-url"],
    lookahead: ["schema-refused"],
    "mcp-old": ["mcp-old-shape"],
    "missing-path-tool": ["tool-ref-unresolvable"],
    "mutates-escape": ["mutates-scope"],
    "no-group-version": ["version-pattern"],
    "no-sandbox": ["missing-field"],
    "no-version": ["missing-field"],
    "policy-autonomy": ["policy-allow-autonomy-0"],
    "policy-no-signers": ["missing-field"],
    "policy-unknown": ["policy-dialect"],
    "range-trap": ["version-range"],
    "redos-version": ["version-pattern"],
    "remote-ref": ["schema-refused"],
    "removed-code": ["tool-removed-field"],
    "removed-entry": ["tool-removed-field"],
    "removed-execute": ["tool-execute"],
    "removed-network": ["tool-removed-field"],
    "removed-run": ["tool-removed-field"],
    "removed-runner": ["tool-removed-field"],
    "removed-secrets": ["tool-removed-field"],
    "sandbox-ref": ["sandbox_ref_unresolvable"],
    "sandbox-widened": ["sandbox-widened"],
    "sdk-manager": ["sdk-package-manager"],
    "secret-duplicate": ["duplicate-slug"],
    "secret-slug": ["bad-value"],
    "secret-value": ["secret-value"],
    "shell-in-bin": ["bad-value"],
    "state-path": ["state-path-unreachable"],
    "two-runner-forms": ["one-form-only"],
    "unknown-key": ["unknown-key"],
  }
  it("is listed here, file by file", () => {
    expect([...refused.keys()].sort()).toEqual(Object.keys(expected).sort())
  })
  it.each(Object.entries(expected))("%s is refused as %j", (name, names) => {
    expect(refused.get(name)?.ok).toBe(false)
    expect(rules(refused.get(name), "error")).toEqual(names)
  })
  it("says for each fault where it is and what to write", () => {
    for (const result of refused.values())
      for (const d of result.diagnostics) expect([d.file, d.message, d.fix].every((s) => s.length > 0)).toBe(true)
  })
  it("never repeats the value of a secret", () => {
    expect(JSON.stringify([...refused.values()])).not.toContain("hunter2")
  })
})

it("the bundled catalogue loads in strict mode without a word", () => {
  expect(buildCatalogue(discoverManifests([bundled], { mode: "strict" })).diagnostics).toEqual([])
})
