/**
 * Each example of the documents is run by a test: those that can be judged without running anything here, the others by the
 * tests that are named. A block that nobody runs is a fault.
 */
import { existsSync, globSync, readFileSync } from "node:fs"
import { basename, join } from "node:path"
import { describe, expect, test } from "vitest"
import { parse, stringify } from "yaml"
import { readConfig } from "../../src/host/config/read.ts"
import { loadManifest } from "../../src/manifest/read/load.ts"

const root = join(import.meta.dirname, "../..")
const here = "test/unit/documents.test.ts"
const typed = "test/e2e/typed.test.ts"
const run = "test/e2e/documents.test.ts"
const skills = "test/e2e/skills.test.ts"
const examples = "test/e2e/examples.test.ts"

interface Block {
  readonly language: string
  readonly text: string
}
const blocksOf = (document: string): readonly Block[] =>
  [...readFileSync(join(root, document), "utf8").matchAll(/^( *)```(\w+)[^\n]*\n(.*?)^ *```/gms)].map(
    ([, indent = "", language = "", text = ""]) => ({
      language,
      text: text.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
    }),
  )

/** By document and language, the test that runs them all. */
const runBy: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  "README.md": { sh: typed, ts: run, json: run },
  "docs/amplifier.md": { sh: run, yaml: here },
  "docs/api.md": { sh: run, ts: run },
  "docs/authoring.md": { sh: run, yaml: here, json: here },
  "docs/config.md": { sh: run, ts: run, yaml: "test/host/config/docs.test.ts" },
  "docs/conform.md": { sh: typed, ts: run, yaml: here },
  "docs/egress-proxy.md": { sh: run, ts: run, json: run },
  "docs/files.md": { yaml: here },
  "docs/formats.md": { yaml: here },
  "docs/http-drivers.md": { yaml: run },
  "docs/library.md": { ts: typed },
  "docs/logins.md": { sh: run, yaml: here },
  "docs/manifests.md": { yaml: typed },
  "docs/mcp-drivers.md": { yaml: here },
  "docs/mcp-server.md": { json: run, yaml: here },
  "docs/operating.md": { sh: run, yaml: here },
  "docs/receipts.md": { sh: "test/host/receipts/verify-copy.test.ts" },
  "docs/replay.md": { sh: typed },
  "docs/run.md": { sh: typed, ts: run },
  "docs/sdk-drivers.md": { yaml: run, js: run },
  "examples/agent-platform/README.md": { sh: examples },
  "examples/security-review/README.md": { sh: examples },
  "examples/test-harness/README.md": { sh: examples },
  "skills/author-driver/SKILL.md": { sh: skills, yaml: skills },
  "skills/author-tool/SKILL.md": { sh: skills, yaml: skills },
}

/** What of a path stands in a test that runs it. */
const named = (document: string): string =>
  document === "README.md"
    ? "README"
    : document.startsWith("docs/")
      ? basename(document)
      : (document.split("/")[1] ?? "")

test("every example of the documents has a test that runs it, and no test is named for none", () => {
  const documents = globSync(["*.md", "docs/*.md", "examples/**/*.md", "skills/*/*.md", "tour/*.md"], { cwd: root })
  const found = Object.fromEntries(
    documents
      .toSorted()
      .map(
        (document) => [document, [...new Set(blocksOf(document).map(({ language }) => language))].toSorted()] as const,
      )
      .filter(([document, languages]) => languages.length > 0 && document !== "CONTRIBUTING.md"),
  )
  const said = Object.fromEntries(Object.entries(runBy).map(([document, by]) => [document, Object.keys(by).toSorted()]))
  expect(found).toEqual(said)
  for (const [document, by] of Object.entries(runBy))
    for (const file of Object.values(by)) {
      expect([file, existsSync(join(root, file))]).toEqual([file, true])
      expect([document, file, readFileSync(join(root, file), "utf8").includes(named(document))]).toEqual([
        document,
        file,
        true,
      ])
    }
})

const yamlOf = (document: string): readonly string[] =>
  blocksOf(document).flatMap(({ language, text }) => (language === "yaml" ? [text] : []))

describe("what documents write into caisson.yaml is taken", () => {
  test.each([
    ["docs/operating.md", 0],
    ["docs/logins.md", 0],
    ["docs/logins.md", 2],
    ["docs/formats.md", 0],
    ["docs/formats.md", 1],
    ["docs/amplifier.md", 0],
  ] as const)("%s, block %i", (document, at) => {
    const read = readConfig(yamlOf(document)[at] ?? "", "/etc/caisson.yaml", "/etc")
    expect(read.ok ? [] : read).toEqual([])
  })
})

describe("what documents write into manifests is taken, strictly", () => {
  const about = { name: "Example", id: "example", description: "An example.", version: "1.0.0" }
  const tool = { ...about, inputs: { type: "object" }, outputs: { type: "string" }, mutates: [], timeout_ms: 1000 }
  const contract = { ...tool, approval: "on-mutate", risk_level: 1 }
  const mcp = parse(yamlOf("docs/mcp-drivers.md")[0] ?? "") as object
  const remote = {
    ...mcp,
    transport: "http",
    implements: [{ tool: "a.b", version: "^1.0.0", metadata: { mcp: { tool_name: "x" } } }],
  }
  const program = {
    kind: "cli",
    bin: "example",
    install: [{ method: "apt", package: "example" }],
    version_check: { cmd: "example --version", parse: "(.*)", range: "*" },
    network: { egress: ["id.example.com:443", "api.example.com:443"] },
    auth: { state: { env: [], paths: ["~/.example"] }, login: { cmd: "example login" } },
    sandbox: {
      fs: { read: ["~/.example"], write: ["~/.example"], deny: [] },
      exec: { allow: false },
      env: { pass: [], set: {} },
    },
    output: { default_format: "text", stream: "stdout", error_stream: "stderr" },
    implements: [{ tool: "a.b", version: "^1.0.0", metadata: { cli: { argv: [] } } }],
  }
  const input = (name: string): object => ({ inputs: { type: "object", properties: { [name]: { type: "string" } } } })
  test.each([
    ["docs/mcp-drivers.md", 0, "DRIVER.md", about],
    ["docs/mcp-drivers.md", 1, "DRIVER.md", { ...about, ...remote }],
    ["docs/mcp-drivers.md", 2, "DRIVER.md", { ...about, ...mcp }],
    ["docs/logins.md", 1, "DRIVER.md", { ...about, ...program }],
    ["docs/files.md", 0, "TOOL.md", contract],
    ["docs/conform.md", 0, "TOOL.md", { ...contract, mutates: ["workspace:/notes/**"], ...input("name") }],
    ["docs/mcp-server.md", 0, "TOOL.md", { ...contract, approval: "auto", ...input("topic") }],
    ["docs/authoring.md", 0, "TOOL.md", contract],
  ] as const)("%s, block %i", (document, at, file, rest) => {
    const [first = "", ...lines] = (yamlOf(document)[at] ?? "").split("\n")
    // A block may begin as a manifest does.
    const written = first === "---" ? lines.join("\n") : [first, ...lines].join("\n")
    const missing = Object.fromEntries(
      Object.entries(rest).filter(([key]) => !Object.hasOwn(parse(written) as object, key)),
    )
    const loaded = loadManifest(file, Buffer.from(`---\n${written}${stringify(missing)}---\n`), "strict")
    expect(loaded.diagnostics).toEqual([])
  })
})

test("what docs/authoring.md writes into an editor's settings is JSON, and names the schemas that there are", () => {
  for (const { language, text } of blocksOf("docs/authoring.md"))
    if (language === "json") expect(JSON.parse(text)).toMatchObject({ "files.associations": { "**/TOOL.md": "yaml" } })
  const names = [...readFileSync(join(root, "docs/authoring.md"), "utf8").matchAll(/[\w-]+\.schema\.json/g)].flat()
  expect(names.length).toBeGreaterThan(3)
  for (const name of names) expect([name, existsSync(join(root, "schemas/bundled", name))]).toEqual([name, true])
})
