import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { expandArgv, expandStdin } from "../../../src/host/drivers/cli/template.ts"
import { createRegistry, type RegistryFolder } from "../../../src/host/registry/registry.ts"
import { resolve } from "../../../src/host/resolver/resolve.ts"

let root = ""
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), "caisson-registry-"))
})
afterEach(() => rmSync(root, { recursive: true }))

const put = (file: string, front: string): void => {
  const full = path.join(root, file)
  mkdirSync(path.dirname(full), { recursive: true })
  writeFileSync(full, `---\n${front}\n---\n`)
}
const tool = (file: string, description = "Counts the lines of a text"): void =>
  put(
    file,
    `name: Count\nid: text.count\ndescription: ${description}\nversion: 1.2.0\ninputs: { type: object, required: [text], properties: { text: { type: string } } }\noutputs: { type: object, properties: { text: { type: string } } }`,
  )
const driver = (file: string, argv: string, ref = "text.count"): void =>
  put(
    file,
    `name: wc\nid: wc\ndescription: wc\nversion: 1.0.0\nkind: cli\nbin: wc\nversion_check: { cmd: wc --version, parse: "(\\\\d+\\\\.\\\\d+)", range: ">=8" }\ninstall: [{ method: apt, package: coreutils }]\npolicy_tags: [pii-safe]\nsandbox: { network: { egress: [] }, fs: { read: [], write: [], deny: [] }, exec: { allow: false }, env: { pass: [], set: {} } }\nimplements:\n  - { tool: ${ref}, version: ^1.0.0, metadata: { cli: { argv: ${argv}, stdin: "\${input.text}" } } }`,
  )
const registryOf = (...dirs: readonly RegistryFolder[]) =>
  createRegistry({
    dirs: dirs.map((each) =>
      typeof each === "string" ? path.join(root, each) : { ...each, dir: path.join(root, each.dir) },
    ),
    mode: "strict",
  })

describe("a registry made from folders", () => {
  it("binds a driver to a tool in another folder, by id and by path", () => {
    tool("tools/deep/er/TOOL.md")
    driver("a/DRIVER.md", "[-l]")
    driver("b/DRIVER.md", "[-l]", "../tools/deep/er/TOOL.md")
    for (const folder of ["a", "b"]) {
      const registry = registryOf("tools", folder)
      expect(registry.diagnostics).toEqual([])
      expect(registry.driver("wc")?.bindings.map((binding) => binding.tool.id)).toEqual(["text.count"])
    }
  })

  it("stands with broken manifests, broken templates and folders that are not there", () => {
    tool("m/TOOL.md")
    driver("m/DRIVER.md", '["--${input.text}"]')
    put("m/broken/TOOL.md", "id: [")
    put("m/unknown/DRIVER.md", "name: x")
    const registry = registryOf("m", "nowhere")
    expect(registry.tool("text.count@1")?.version).toBe("1.2.0")
    expect(registry.driver("wc")?.refusal?.reason).toContain(
      "implements[0].metadata.cli.argv[0]: `input.text` would become part of an option's name",
    )
    expect(registry.failed.map((each) => path.relative(root, each.file)).toSorted()).toEqual([
      "m/broken/TOOL.md",
      "m/unknown/DRIVER.md",
      "nowhere",
    ])
  })

  it("lets the folder named first keep an id, whatever the names of the folders", () => {
    tool("a/TOOL.md", "The second")
    tool("z/TOOL.md", "The first")
    const registry = registryOf("z", "a")
    expect(registry.tool("text.count")?.description).toBe("The first")
    expect(registry.failed.map((each) => path.relative(root, each.file))).toEqual(["a/TOOL.md"])
  })

  it("counts a folder that is named twice, or lies in another, once", () => {
    tool("m/TOOL.md")
    driver("m/wc/DRIVER.md", "[-l]")
    expect(registryOf("m", "m/wc", "m").diagnostics).toEqual([])
  })

  it("takes policy tags for verified only in a trusted folder", () => {
    tool("m/TOOL.md")
    driver("m/DRIVER.md", "[-l]")
    expect(registryOf("m").driver("wc")?.verifiedTags).toEqual([])
    expect(registryOf({ dir: "m", trusted: true }).driver("wc")?.verifiedTags).toEqual(["pii-safe"])
  })
})

describe("the bundled catalogue", () => {
  const registry = createRegistry({
    dirs: [{ dir: path.join(import.meta.dirname, "../../../manifests"), trusted: true }],
    mode: "strict",
  })
  const available = new Map(registry.drivers.map((each) => [each.key, { available: true } as const]))

  it("registers without a single diagnostic", () => {
    expect(registry.diagnostics).toEqual([])
    expect(registry.drivers.filter((each) => each.refusal !== undefined)).toEqual([])
  })

  it.each(
    registry.tools.flatMap((each) =>
      each.examples.map((example) => [`${each.id}: ${example.name}`, each, example.input] as const),
    ),
  )("routes and expands %s", (_, each, input) => {
    const route = resolve({
      tool: each,
      drivers: registry.driversFor(each),
      call: { input },
      policy: {},
      availability: available,
      health: new Map(),
      auth: new Map(),
    })
    if (!route.ok) throw new Error(route.cause.message)
    const { argv, stdin } = route.binding.cli ?? {}
    const values = { input: route.mappedInput, context: {} }
    const isCli = route.driver.contract.body.kind === "cli"
    expect(argv === undefined ? !isCli : expandArgv(argv, values).ok).toBe(true)
    expect(stdin === undefined || expandStdin(stdin, values).ok).toBe(true)
  })
})
