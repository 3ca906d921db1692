import { describe, expect, it } from "vitest"
import { buildRegistry, type SnapshotOptions } from "../../../src/host/registry/snapshot.ts"
import { resolve } from "../../../src/host/resolver/resolve.ts"
import type { Registry } from "../../../src/host/registry/types.ts"
import type { Diagnostic, DriverContract, LoadResult, Manifest, ToolContract } from "../../../src/manifest/types.ts"
import { bodyOf, cliDriverOf, driverOf, entryOf, toolOf } from "../resolver/contracts.ts"

const loaded = (manifest: Manifest, diagnostics: readonly Diagnostic[] = []): LoadResult => ({
  ok: true,
  manifest,
  diagnostics,
})
const broken = (file: string): LoadResult => ({
  ok: false,
  file,
  kind: "driver",
  diagnostics: [{ severity: "error", rule: "schema", file, path: "kind", message: "m", fix: "f" }],
})
const build = (results: readonly LoadResult[], options: SnapshotOptions = {}, trusted = false): Registry =>
  buildRegistry(
    results.map((result) => ({ result, trusted, folder: "/m" })),
    options,
  )
const at = <T extends ToolContract | DriverContract>(contract: T, file: string, digest: string): T => ({
  ...contract,
  source: { ...contract.source, file, digest },
})
const rules = (registry: Registry): readonly string[] =>
  registry.diagnostics.map((each) => `${each.severity}:${each.rule}`)

const tool = toolOf({ outputs: { type: "object", properties: { note: { type: "string" } } } })
const two = toolOf({ version: "2.1.0", major: 2 })

describe("the registry", () => {
  it("finds a tool by id, highest major first, or by id@major", () => {
    const registry = build([loaded(two), loaded(tool), loaded(toolOf({ version: "10.0.0", major: 10 }))])
    expect([
      registry.tool("image.create")?.major,
      registry.tool("image.create@1")?.major,
      registry.tool("image.create@2")?.major,
    ]).toEqual([10, 1, 2])
    expect(
      ["image.create@3", "image.create@", "image.create@01", "image", "@1", ""].map((ref) => registry.tool(ref)),
    ).toEqual(Array.from({ length: 6 }, () => undefined))
  })

  it("finds a driver by id or id@major and lists the drivers of a tool, refused ones too", () => {
    const bad = driverOf("bad", { implements: [entryOf({ versionRange: "^9" })] })
    const registry = build([
      loaded(driverOf("good")),
      loaded(bad),
      loaded(driverOf("else", { implements: [entryOf({ tool: "image.edit" })] })),
      loaded(tool),
    ])
    expect(registry.driver("good@1")?.contract.id).toBe("good")
    expect(registry.driversFor(tool).map((driver) => driver.key)).toEqual(["bad@1", "good@1"])
  })

  it("binds whatever the order in which manifests were found", () => {
    expect(build([loaded(driverOf("d")), loaded(tool)]).driver("d")?.bindings).toHaveLength(1)
  })

  it("is not taken down by manifests that did not load", () => {
    const registry = build([broken("/x/DRIVER.md"), loaded(tool), loaded(driverOf("d"))])
    expect(registry.failed.map((each) => each.file)).toEqual(["/x/DRIVER.md"])
    expect(registry.driver("d")?.refusal).toBeUndefined()
    expect(rules(registry)).toEqual(["error:schema"])
  })

  it("is frozen", () => {
    const registry = build([loaded(tool), loaded(driverOf("d"))])
    expect(
      [registry, registry.tools, registry.drivers, registry.drivers[0], registry.diagnostics, registry.failed].every(
        Object.isFrozen,
      ),
    ).toBe(true)
  })

  it("keeps warnings of manifests that loaded", () => {
    const warning: Diagnostic = { severity: "warning", rule: "w", file: "f", path: "", message: "m", fix: "f" }
    expect(rules(build([loaded(tool, [warning])]))).toEqual(["warning:w"])
  })
})

describe("binding", () => {
  const refusal = (driver: DriverContract) => {
    const registry = build([loaded(tool), loaded(driver)])
    return {
      reason: registry.drivers[0]?.refusal?.reason,
      bindings: registry.drivers[0]?.bindings.length,
      rules: rules(registry),
    }
  }

  it("binds an entry to every major that its range takes", () => {
    const registry = build([
      loaded(tool),
      loaded(two),
      loaded(driverOf("d", { implements: [entryOf({ versionRange: ">=1" })] })),
    ])
    expect(registry.driver("d")?.bindings.map((binding) => binding.tool.major)).toEqual([1, 2])
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, DriverContract, string, RegExp]>([
    ["a tool that is not registered", driverOf("d", { implements: [entryOf({ tool: "nope" })] }), "error:tool-not-registered", /implements\[0\]\.tool: there is no tool `nope`/],
    ["a version out of range", driverOf("d", { implements: [entryOf({ versionRange: "^2" })] }), "error:tool-version-out-of-range", /registered as 1\.0\.0, which `\^2` does not take/],
    ["an unknown transform", cliDriverOf("d", { implements: [entryOf({ cli: { argv: [] }, mapping: { size: { from: "aspect", transform: "aspect_to_size" } } })] }), "error:unknown-transform", /implements\[0\]\.mapping\.size: there is no transform/],
    ["a bad argv template", cliDriverOf("d", { implements: [entryOf({ cli: { argv: ["x", "${input.nope}"] } })] }), "error:template-unknown-value", /implements\[0\]\.metadata\.cli\.argv\[1\]: `input\.nope`/],
    ["a bad stdin template", cliDriverOf("d", { implements: [entryOf({ cli: { argv: [], stdin: "${secrets.x}" } })] }), "error:template-secret", /metadata\.cli\.stdin/],
    ["a required input that it drops", driverOf("d", { implements: [entryOf({ dropInputs: ["prompt"] })] }), "error:narrowing-required", /drop_inputs\[0\]: `prompt` is required/],
    ["a longer timeout", driverOf("d", { timeoutMs: 30_001 }), "error:timeout-widened", /30001 ms is longer/],
    ["a cli driver that does not say how it is called", cliDriverOf("d"), "error:binding-no-argv", /nothing says how `d` is called/],
    ["one bad entry of two", driverOf("d", { implements: [entryOf(), entryOf({ tool: "nope" })] }), "error:tool-not-registered", /implements\[1\]/],
  ])("refuses the driver for %s", (_, driver, rule, reason) => {
    const found = refusal(driver)
    expect(found.rules).toContain(rule)
    expect(found.reason).toMatch(reason)
    expect(found.bindings).toBe(0)
  })

  it("keeps the contract check's warnings and does not refuse for them", () => {
    const found = refusal(driverOf("d", { implements: [entryOf({ mapping: { prompt: { from: "text" } } })] }))
    expect(found).toEqual({ reason: undefined, bindings: 1, rules: ["warning:mapping-inverted"] })
  })

  it("reads a mapping that was written the other way round", () => {
    const registry = build([
      loaded(tool),
      loaded(driverOf("d", { implements: [entryOf({ mapping: { prompt: { from: "text" } } })] })),
    ])
    expect(registry.driver("d")?.bindings[0]?.implementation.mapping).toEqual({ text: { from: "prompt" } })
  })

  it("compiles the templates of a cli driver once", () => {
    const registry = build([
      loaded(tool),
      loaded(
        cliDriverOf("d", {
          implements: [entryOf({ cli: { argv: ["--p=${input.prompt}", "--"], stdin: "${input.prompt}" } })],
        }),
      ),
    ])
    const program = registry.driver("d")?.bindings[0]?.cli
    expect([program?.argv.elements.length, program?.argv.positionalFrom, program?.stdin?.pieces.length]).toEqual([
      2, 2, 1,
    ])
  })

  it("takes a driver of another kind with a transform that comes with its code", () => {
    const other = driverOf("d", {
      implements: [entryOf({ mapping: { size: { from: "aspect", transform: "theirs" } } })],
    })
    expect(refusal(other)).toEqual({ reason: undefined, bindings: 1, rules: ["warning:unknown-transform"] })
  })

  it("binds one driver to two majors, each by its own entry, or to the one that is registered", () => {
    const both = driverOf("d", {
      implements: [
        entryOf({ versionRange: "^1.0.0", costUnitsPerCall: 1 }),
        entryOf({ versionRange: "*", major: 2, toolRef: "image.create@2", costUnitsPerCall: 2 }),
      ],
    })
    const bound = (registry: Registry) =>
      registry
        .driver("d")
        ?.bindings.map(({ tool: { major }, implementation }) => [major, implementation.costUnitsPerCall])
    expect(bound(build([loaded(tool), loaded(two), loaded(both)]))).toEqual([
      [1, 1],
      [2, 2],
    ])
    const one = build([loaded(tool), loaded(both)])
    expect(bound(one)).toEqual([[1, 1]])
    expect(rules(one)).toEqual(["warning:tool-version-out-of-range"])
  })

  it("leaves other drivers alone when one is refused", () => {
    const registry = build([
      loaded(tool),
      loaded(driverOf("bad", { implements: [entryOf({ tool: "nope" })] })),
      loaded(driverOf("good")),
    ])
    expect(registry.drivers.map((driver) => driver.refusal === undefined)).toEqual([false, true])
  })
})

describe("identity", () => {
  const first = at(tool, "/a/TOOL.md", "sha256:a")
  const other = at({ ...tool, name: "evil" }, "/b/TOOL.md", "sha256:b")
  const inFolders = (...folders: readonly (readonly LoadResult[])[]): Registry =>
    buildRegistry(
      folders.flatMap((results, index) => results.map((result) => ({ result, trusted: false, folder: `/${index}` }))),
    )

  it("lets the folder named first keep an id@major", () => {
    const registry = inFolders([loaded(first)], [loaded(other)])
    expect(registry.tools.map((each) => each.source.file)).toEqual(["/a/TOOL.md"])
    expect(registry.failed).toMatchObject([
      { file: "/b/TOOL.md", diagnostics: [{ rule: "duplicate-id", message: expect.stringContaining("/a/TOOL.md") }] },
    ])
    expect(inFolders([loaded(other)], [loaded(first)]).tools.map((each) => each.source.file)).toEqual(["/b/TOOL.md"])
  })

  it("does not let a third folder knock out what the first declares", () => {
    expect(
      inFolders([loaded(first)], [loaded(other)], [loaded(at(tool, "/c/TOOL.md", "sha256:c"))]).tools.map(
        (each) => each.source.file,
      ),
    ).toEqual(["/a/TOOL.md"])
  })

  it("refuses both of two claims in one folder", () => {
    const registry = inFolders([loaded(first), loaded(other)])
    expect(registry.tools).toEqual([])
    expect(rules(registry)).toEqual(["error:duplicate-id", "error:duplicate-id"])
  })

  it("lets the earlier of two claims hold where no folder is known", () => {
    const registry = buildRegistry([loaded(first), loaded(other)].map((result) => ({ result, trusted: false })))
    expect(registry.tools.map((each) => each.source.file)).toEqual(["/a/TOOL.md"])
  })

  it("takes equal copies for one", () => {
    const registry = inFolders([loaded(first)], [loaded(at(tool, "/c/TOOL.md", "sha256:a"))])
    expect([registry.tools.length, registry.diagnostics.length]).toEqual([1, 0])
  })

  it("does not let a tool's name stand in the way of a driver's", () => {
    const registry = inFolders([loaded(toolOf({ id: "jq" })), loaded(tool)], [loaded(driverOf("jq"))])
    expect([registry.tool("jq")?.kind, registry.driver("jq")?.key]).toEqual(["tool", "jq@1"])
  })

  it("takes two majors of one id for two registrations", () => {
    const registry = build([loaded(tool), loaded(driverOf("d")), loaded(driverOf("d", { version: "2.0.0", major: 2 }))])
    expect(registry.drivers.map((driver) => driver.key)).toEqual(["d@1", "d@2"])
  })
})

describe("a second manifest folder", () => {
  const folders = (
    ...all: readonly { readonly trusted?: boolean; readonly results: readonly LoadResult[] }[]
  ): Registry =>
    buildRegistry(
      all.flatMap(({ trusted = false, results }, index) =>
        results.map((result) => ({ result, trusted, folder: `/${index}` })),
      ),
    )
  const own = (...results: readonly LoadResult[]) => ({ trusted: true, results })
  const theirs = (...results: readonly LoadResult[]) => ({ results })
  const action = (version: string, file: string): LoadResult =>
    loaded({
      kind: "action",
      id: "notes:write",
      description: "",
      version,
      category: "notes",
      verb: "write",
      targetKind: "notes",
      mutates: [],
      requires: { secrets: [], tools: [] },
      approval: { class: "auto" },
      riskLevel: 0,
      firesEvents: [],
      source: { ...tool.source, file, digest: `sha256:${file}` },
    })
  const secrets = (file: string, ...slugs: readonly string[]): LoadResult =>
    loaded({
      kind: "secrets",
      secrets: slugs.map((slug) => ({
        slug,
        name: file,
        description: "",
        secretKind: "opaque",
        access: { reveal: [], bind: [], rotate: [] },
        exposures: [],
        env: [],
        tags: [],
        metadata: {},
      })),
      source: { ...tool.source, file, digest: `sha256:${file}` },
    })

  it("does not raise the major that a tool's id alone means, and may add that major", () => {
    const registry = folders(own(loaded(tool)), theirs(loaded(at(two, "/evil/TOOL.md", "sha256:e"))))
    expect(registry.tool("image.create")?.major).toBe(1)
    expect(registry.tool("image.create@2")?.source.file).toBe("/evil/TOOL.md")
    expect(registry.diagnostics).toEqual([])
  })

  it("does not knock a tool out by a higher major of the action that it implements", () => {
    const mine = loaded(toolOf({ implements: "notes:write" }))
    const registry = folders(own(mine, action("1.0.0", "/a/ACTION.md")), theirs(action("2.0.0", "/evil/ACTION.md")))
    expect(registry.tools.map((each) => each.id)).toEqual(["image.create"])
    expect(registry.action("notes:write")?.source.file).toBe("/a/ACTION.md")
    expect(registry.action("notes:write@2")?.source.file).toBe("/evil/ACTION.md")
  })

  it("does not knock out a secret by its slug, and is told that its own is ignored", () => {
    const registry = folders(
      own(secrets("/a/SECRETS.md", "api-key")),
      theirs(secrets("/evil/SECRETS.md", "api-key", "x-key")),
    )
    expect(registry.secrets.map((each) => [each.slug, each.name])).toEqual([
      ["api-key", "/a/SECRETS.md"],
      ["x-key", "/evil/SECRETS.md"],
    ])
    expect(registry.diagnostics).toMatchObject([
      { rule: "duplicate-id", file: "/evil/SECRETS.md", path: "secrets[0].slug", message: /\/a\/SECRETS\.md/ },
    ])
  })

  it("does not knock a driver out by a verbatim copy whose paths lead to other tools", () => {
    const mine = driverOf("d")
    const copy = at({ ...mine, implements: [entryOf({ tool: "image.edit" })] }, "/evil/DRIVER.md", mine.source.digest)
    const registry = folders(own(loaded(tool), loaded(mine)), theirs(loaded(copy)))
    expect(registry.driver("d")).toMatchObject({ contract: { source: { file: mine.source.file } }, vouched: true })
    expect(registry.driver("d")?.refusal).toBeUndefined()
  })

  it("does not stand in for a tool or driver of an earlier folder that did not load", () => {
    const gone = (kind: "tool" | "driver", id: string): LoadResult => ({
      ok: false,
      file: `/a/${id}`,
      diagnostics: [],
      kind,
      claims: { id, tools: [] },
    })
    const registry = folders(
      own(gone("tool", "image.create"), gone("driver", "d")),
      theirs(loaded(at(tool, "/evil/TOOL.md", "sha256:e")), loaded(at(driverOf("d"), "/evil/DRIVER.md", "sha256:f"))),
    )
    expect([registry.tools, registry.drivers]).toEqual([[], []])
    expect(registry.diagnostics.filter((each) => each.rule === "duplicate-id").map((each) => each.file)).toEqual([
      "/evil/TOOL.md",
      "/evil/DRIVER.md",
    ])
  })

  it("does not hold a vouched driver to what a driver of its id narrowed elsewhere", () => {
    const other = driverOf("d", { implements: [entryOf({ dropInputs: ["seed"] })] })
    const { narrowings } = folders(theirs(loaded(tool), loaded(other)))
    const registry = buildRegistry(
      [loaded(tool), loaded(driverOf("d"))].map((result) => ({ result, trusted: true, folder: "/m" })),
      { known: narrowings },
    )
    expect(registry.driver("d")?.refusal).toBeUndefined()
  })

  it("adds drivers that are candidates behind the vouched ones at equal cost, whatever their id and kind", () => {
    const plain = toolOf({ costClass: "trivial" })
    const mine = driverOf("zz", { body: bodyOf("mcp") })
    const registry = folders(
      own(loaded(plain), loaded(mine)),
      theirs(
        loaded(driverOf("aa", { body: bodyOf("http") })),
        loaded(driverOf("cheap", { costUnitsPerCall: 0 })),
        loaded(
          driverOf("zz", {
            version: "2.0.0",
            major: 2,
            source: { ...mine.source, file: "/evil/DRIVER.md", digest: "e" },
          }),
        ),
      ),
    )
    const route = (pin?: string, of = plain) =>
      resolve({
        tool: of,
        drivers: registry.driversFor(of),
        call: { input: { prompt: "x" }, ...(pin === undefined ? {} : { pin }) },
        policy: {},
        availability: new Map(registry.drivers.map((each) => [each.key, { available: true }])),
        health: new Map(),
        auth: new Map(),
      })
    expect(route()).toMatchObject({ ok: true, driver: { key: "zz@1" } })
    expect(route().rows.map((row) => row.reason)).toContain(
      "zz@1 was preferred: the operator vouches for it, and not for this one",
    )
    expect(route("zz")).toMatchObject({ ok: true, driver: { key: "zz@1" } })
    expect(route("zz@2")).toMatchObject({ ok: true, driver: { key: "zz@2" } })
    expect(route("aa")).toMatchObject({ ok: true, driver: { key: "aa@1" } })
    const named = { ...plain, defaultImplementation: "zz" }
    expect(route(undefined, named)).toMatchObject({ ok: true, driver: { key: "zz@1" } })
  })
})

describe("policy tags", () => {
  const tagged = driverOf("d", { policyTags: ["pii-safe", "eu"] })
  // biome-ignore format: a table reads by rows
  it.each<[string, boolean, SnapshotOptions["verifiedTags"], readonly string[]]>([
    ["are claims by default", false, undefined, []],
    ["count in a folder that the operator vouches for", true, undefined, ["pii-safe", "eu"]],
    ["count where the operator verified them by id", false, { d: ["eu"] }, ["eu"]],
    ["count where the operator verified them by id@major", false, { "d@1": ["pii-safe"], "d@2": ["eu"] }, ["pii-safe"]],
    ["do not count where the driver does not declare them", false, { d: ["other"] }, []],
  ])("%s", (_, trusted, verifiedTags, expected) => {
    const registry = build([loaded(tool), loaded(tagged)], verifiedTags === undefined ? {} : { verifiedTags }, trusted)
    expect(registry.driver("d")?.verifiedTags).toEqual(expected)
  })
})

describe("a re-registration", () => {
  const narrow = (dropInputs: readonly string[], over: Partial<DriverContract> = {}): DriverContract =>
    driverOf("d", { implements: [entryOf({ dropInputs })], ...over })
  const { narrowings: known } = build([loaded(tool), loaded(narrow(["seed"]))])

  it("is held to what was recorded", () => {
    expect(known).toEqual({ "d@1 /catalogue/d/DRIVER.md": { "image.create": { inputs: ["seed"], outputs: [] } } })
  })

  it("does not record what a refused driver narrows", () => {
    expect(build([loaded(tool), loaded(narrow(["prompt"]))]).narrowings).toEqual({})
  })

  // biome-ignore format: a table reads by rows
  it.each<[string, DriverContract, boolean]>([
    ["keeps a driver that narrows as before", narrow(["seed"]), false],
    ["refuses one that narrows more under the same major", narrow(["seed", "aspect"]), true],
    ["refuses one that narrows less under the same major", narrow([]), true],
    ["refuses one that drops outputs under the same major", driverOf("d", { implements: [entryOf({ dropInputs: ["seed"], dropOutputs: ["note"] })] }), true],
    ["keeps one that narrows more under a new major", narrow(["seed", "aspect"], { version: "2.0.0", major: 2 }), false],
  ])("%s", (_, driver, refused) => {
    const registry = build([loaded(tool), loaded(driver)], { known })
    expect(registry.drivers[0]?.refusal?.fix).toEqual(refused ? expect.stringContaining("2.0.0") : undefined)
    expect(rules(registry)).toEqual(refused ? ["error:narrowing-needs-major"] : [])
  })
})
