/** The specification's own drivers, with contracts for the tools that they name and nobody wrote down. */
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

export const seeds = join(import.meta.dirname, "../../fixtures/manifests/seeds")

/** Two that the specification has itself; the others take whatever the drivers' templates name. */
const OWN: Readonly<Record<string, string>> = { "image-create": "image.create", "pricing-snapshot": "pricing-snapshot" }
const contract = (name: string, inputs: readonly string[]): string => {
  const type = (input: string): string =>
    input === "method" ? "{ enum: [merge, squash, rebase] }" : "{ type: [string, number] }"
  const properties = inputs.map((input) => `${input}: ${type(input)}`).join(", ")
  const id = name.replace(/^(fs|db)-/, "$1.")
  return `---\nname: ${name}\nid: ${id}\ndescription: d\nversion: 1.0.0\ninputs: { type: object, properties: { ${properties} } }\noutputs: {}\n---\n`
}

/** The examples of one part, in a folder of their own. Whoever asks removes it. */
export const openSeeds = (part: string): string => {
  const folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-seeds-")))
  cpSync(join(seeds, part), folder, { recursive: true })
  const text = globSync("**/{DRIVER,CLI}.md", { cwd: folder })
    .map((file) => readFileSync(join(folder, file), "utf8"))
    .join("\n")
  const named = (pattern: RegExp): readonly string[] =>
    [...new Set([...text.matchAll(pattern)].map(([, name = ""]) => name))].sort()
  const inputs = named(/\binput\.([A-Za-z_]\w*)/g)
  const present = new Set(globSync("*", { cwd: folder }))
  for (const name of named(/\.\/tools\/([a-z0-9-]+)\/TOOL\.md/g)) {
    mkdirSync(join(folder, "tools", name), { recursive: true })
    const file = join(folder, "tools", name, "TOOL.md")
    const own = OWN[name]
    if (own === undefined) writeFileSync(file, contract(name, inputs))
    else if (present.has(own)) writeFileSync(file, readFileSync(join(folder, own, "TOOL.md")))
    else cpSync(join(seeds, "aip-14", own, "TOOL.md"), file)
  }
  return folder
}
