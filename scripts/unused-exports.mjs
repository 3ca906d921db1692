/**
 * Exports that no other file imports, read from the sources as text.
 *
 * Guarantees: every `import`/`export … from` and dynamic `import()` of a relative path is resolved to the file it means;
 * names are those the exporting file knows them by. Changes nothing.
 * Assumes: the house's format (biome): a statement begins a line, names are on it or one a line below.
 */
import { globSync, readFileSync } from "node:fs"
import { dirname, join, normalize } from "node:path"

const STATEMENT =
  /^(?:import|export)\s+(?:type\s+)?(?:(\*(?:\s+as\s+\w+)?)|(\w+\s*,?\s*)?(?:\{([^}]*)\})?)\s*from\s+"(\.[^"]+)"/gm
const DYNAMIC = /import\(\s*"(\.[^"]+)"\s*\)/g
const DECLARED =
  /^export\s+(?:declare\s+)?(?:abstract\s+)?(?:async\s+)?(?:const|let|function\*?|class|interface|type|enum)\s+(\w+)/gm
const LISTED = /^export\s+(?:type\s+)?\{([^}]*)\}\s*(?!\s*from)$/gm

/** @param {string} list */
const namesIn = (list) =>
  list
    .split(",")
    .map((part) => part.trim().replace(/^type\s+/, ""))
    .filter((part) => part !== "")
    .map((part) => part.split(/\s+as\s+/)[0] ?? part)

/** @typedef {{ from: string, to: string, names: string[] | "all", reexport: boolean }} Import */

/** @param {string} root @param {readonly string[]} patterns @returns {{ files: string[], imports: Import[], exported: Map<string, string[]> }} */
export const readImports = (
  root,
  patterns = ["src/**/*.ts", "test/**/*.ts", "bench/**/*.ts", "scripts/**/*.{ts,mjs}"],
) => {
  const files = globSync([...patterns], { cwd: root })
    .map(normalize)
    .sort()
  /** @type {Import[]} */
  const imports = []
  /** @type {Map<string, string[]>} */
  const exported = new Map()
  for (const file of files) {
    const text = readFileSync(join(root, file), "utf8")
    const target = (/** @type {string} */ path) => normalize(join(dirname(file), path))
    for (const [statement, star, , list, path] of text.matchAll(STATEMENT))
      imports.push({
        from: file,
        to: target(/** @type {string} */ (path)),
        names: star === undefined ? namesIn(list ?? "") : "all",
        reexport: statement.startsWith("export"),
      })
    for (const [, path] of text.matchAll(DYNAMIC))
      imports.push({ from: file, to: target(/** @type {string} */ (path)), names: "all", reexport: false })
    exported.set(file, [
      ...[...text.matchAll(DECLARED)].map((match) => /** @type {string} */ (match[1])),
      ...[...text.matchAll(LISTED)].flatMap((match) => namesIn(match[1] ?? "")),
    ])
  }
  return { files, imports, exported }
}

/** Exports that no other file names. Of `entries` every export is the public's. @param {string} root @param {readonly string[]} entries */
export const unusedExports = (root, entries) => {
  const { imports, exported } = readImports(root)
  /** @type {Map<string, Set<string> | "all">} */
  const used = new Map()
  for (const { to, names } of imports) {
    const known = used.get(to) ?? new Set()
    if (names === "all" || known === "all") used.set(to, "all")
    else used.set(to, new Set([...known, ...names]))
  }
  /** @type {string[]} */
  const unused = []
  for (const [file, names] of exported) {
    const known = used.get(file)
    if (!file.startsWith("src/") || entries.includes(file) || known === "all") continue
    for (const name of names) if (known === undefined || !known.has(name)) unused.push(`${file}: ${name}`)
  }
  return unused
}
