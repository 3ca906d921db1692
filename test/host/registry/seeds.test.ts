/** The specification's own examples: what each is read as in both modes, and whether its driver holds against its contracts. */
import { globSync } from "node:fs"
import { dirname, relative } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { createRegistry } from "../../../src/host/registry/registry.ts"
import type { Registry } from "../../../src/host/registry/types.ts"
import { discoverManifests } from "../../../src/manifest/read/discover.ts"
import type { LoadResult, ManifestMode } from "../../../src/manifest/types.ts"
import { removeFolder } from "../../support/remove-folder.ts"
import { openSeeds, seeds } from "../../support/seeds.ts"

const parts = globSync("aip-*", { cwd: seeds }).sort()
const opened = new Map(parts.map((part) => [part, openSeeds(part)]))
const at = (part: string): string => opened.get(part) ?? ""
afterAll(() => opened.forEach((folder) => removeFolder(folder)))

const fileOf = (result: LoadResult): string => (result.ok ? result.manifest.source.file : result.file)
/** By the example's name, without the contracts that were written for it. */
const read = (part: string, mode: ManifestMode): ReadonlyMap<string, LoadResult> =>
  new Map(
    discoverManifests([at(part)], { mode })
      .map((result) => [dirname(relative(at(part), fileOf(result))), result] as const)
      .filter(([name]) => !name.startsWith("tools/")),
  )
const rulesOf = ({ diagnostics }: LoadResult): readonly string[] =>
  [...new Set(diagnostics.filter(({ severity }) => severity === "error").map(({ rule }) => rule))].sort()

/** How many there are, and of those that are not simply taken: what is lenient in compat mode, and what each mode refuses. */
interface Expected {
  readonly count: number
  readonly leniencies?: Readonly<Record<string, readonly string[]>>
  readonly compat?: Readonly<Record<string, readonly string[]>>
  readonly strict?: Readonly<Record<string, readonly string[]>>
}
const noAddress = ["missing-field"]
const oldShape = { "filesystem-mcp": ["mcp-old-shape"] }
const expected: Readonly<Record<string, Expected>> = {
  "aip-14": {
    count: 9,
    leniencies: { "apollo-pricing-http": ["http-base-url-derived"] },
    strict: { "apollo-pricing-http": noAddress },
  },
  "aip-19": { count: 7 },
  "aip-29": {
    count: 5,
    leniencies: { gh: ["cli-intents", "install-hash-placeholder"], stripe: ["install-hash-placeholder"] },
    // A wildcard at the right edge of a host (C-15).
    compat: { kubectl: ["egress-entry"] },
    strict: { gh: ["bad-value", "unknown-key"], kubectl: ["bad-value"], stripe: ["bad-value"] },
  },
  "aip-30": {
    count: 7,
    leniencies: {
      "mistral-image-eu-http": ["http-base-url-derived"],
      "openai-dalle-3-http": ["http-base-url-derived", "template-bare-name"],
      "openai-images-http": ["http-base-url-derived"],
      "replicate-http": ["http-base-url-missing"],
    },
    compat: oldShape,
    strict: {
      ...oldShape,
      "mistral-image-eu-http": noAddress,
      "openai-dalle-3-http": noAddress,
      "openai-images-http": noAddress,
      "replicate-http": noAddress,
    },
  },
  "aip-31": {
    count: 6,
    leniencies: { "github-api-http": ["login-url"] },
    strict: { "github-api-http": ["login-url"] },
  },
  "aip-32": {
    count: 4,
    leniencies: { "github-mcp": ["login-url"], "postgres-mcp": ["install-malformed"] },
    strict: { "github-mcp": ["login-url"], "postgres-mcp": ["bad-value", "out-of-range"] },
  },
  "aip-33": { count: 4 },
  "aip-39": { count: 10 },
}

it("has every part that is listed here", () => {
  expect(parts).toEqual(Object.keys(expected))
})

describe.each(Object.entries(expected))("%s", (part, { count, leniencies = {}, compat = {}, strict = {} }) => {
  it.each([
    ["compat", compat],
    ["strict", strict],
  ] as const)("is read whole in %s mode but for what is refused by name", (mode, refused) => {
    const results = read(part, mode)
    expect(results.size).toBe(count)
    const refusals = [...results].filter(([, result]) => !result.ok).map(([name, result]) => [name, rulesOf(result)])
    expect(Object.fromEntries(refusals)).toEqual(refused)
    for (const result of results.values())
      for (const { file, message, fix } of result.diagnostics)
        expect([file, message, fix].every((text) => text.length > 0)).toBe(true)
  })
  it("says in compat mode what it was lenient with", () => {
    const said = [...read(part, "compat")].flatMap(([name, result]) => {
      const known = result.ok ? [...result.manifest.source.leniencies].sort() : []
      return known.length === 0 ? [] : [[name, known]]
    })
    expect(Object.fromEntries(said)).toEqual(leniencies)
  })
})

describe("the drivers among them", () => {
  const registry = (part: string, mode: ManifestMode): Registry =>
    createRegistry({ dirs: [{ dir: at(part), trusted: true }], mode })
  /** Tools that a driver serves by its binding; or why by none. */
  const bound = (part: string, mode: ManifestMode): Record<string, number | string | undefined> =>
    Object.fromEntries(
      registry(part, mode).drivers.map(({ key, bindings, refusal }) => [key, refusal?.code ?? bindings.length]),
    )
  it.each<[string, Record<string, number | string>, Record<string, number | string>]>([
    ["aip-14", { "apollo-pricing-http@1": 1 }, {}],
    ["aip-29", { "acme-legacy@1": 3, "ffmpeg@1": 5, "gh@1": 8, "stripe@1": 8 }, { "acme-legacy@1": 3, "ffmpeg@1": 5 }],
    [
      "aip-30",
      {
        "gh@1": 3,
        "host-builtin-fs@1": 4,
        "mistral-image-eu-http@1": 1,
        // It drops inputs that the contract does not have.
        "openai-dalle-3-http@1": "manifest_invalid",
        "openai-images-http@1": 1,
        "replicate-http@1": 3,
      },
      { "gh@1": 3, "host-builtin-fs@1": 4 },
    ],
    [
      "aip-31",
      {
        "anthropic-chat-http@1": 1,
        "github-api-http@1": 1,
        "google-maps-geocoding-http@1": 1,
        "openai-chat-http@1": 1,
        "openai-images-http@1": 1,
        "replicate-http@1": 3,
      },
      {
        "anthropic-chat-http@1": 1,
        "google-maps-geocoding-http@1": 1,
        "openai-chat-http@1": 1,
        "openai-images-http@1": 1,
        "replicate-http@1": 3,
      },
    ],
    [
      "aip-32",
      { "acme-remote-mcp@1": 2, "filesystem-mcp@1": 3, "github-mcp@1": 2, "postgres-mcp@1": 2 },
      { "acme-remote-mcp@1": 2, "filesystem-mcp@1": 3 },
    ],
    [
      "aip-33",
      { "anthropic-py-sdk@1": 1, "host-llama-sdk@1": 1, "host-sdxl-sdk@1": 1, "openai-sdk@1": 2 },
      { "anthropic-py-sdk@1": 1, "host-llama-sdk@1": 1, "host-sdxl-sdk@1": 1, "openai-sdk@1": 2 },
    ],
  ])("of %s hold against the contracts that they name, or are refused by name", (part, compat, strict) => {
    expect(bound(part, "compat")).toEqual(compat)
    expect(bound(part, "strict")).toEqual(strict)
  })
  it("are of every kind, and the specification's own contract of an image is served by five of them", () => {
    const kinds = parts.flatMap((part) => registry(part, "compat").drivers.map(({ contract }) => contract.body.kind))
    expect(new Set(kinds)).toEqual(new Set(["cli", "http", "mcp", "sdk", "builtin"]))
    const served = ["aip-30", "aip-31", "aip-33"].flatMap((part) =>
      registry(part, "compat").drivers.flatMap(({ key, bindings }) =>
        bindings.some(({ tool }) => tool.id === "image.create") ? [key] : [],
      ),
    )
    expect(new Set(served)).toEqual(
      new Set([
        "mistral-image-eu-http@1",
        "openai-images-http@1",
        "replicate-http@1",
        "host-sdxl-sdk@1",
        "openai-sdk@1",
      ]),
    )
  })
})
