/**
 * `node strip.mjs FOLDER`: every TypeScript file of a copied work tree becomes the JavaScript that Node makes of it.
 *
 * Guarantees: the same text at the same place, with blanks for types, under a name that ends in `.js`; what names such a
 * file in a string names it so; each keeps the time of its last change, so that `dist` stays newer.
 * Why: Node strips types in WebAssembly at every start of a host or launcher. Emulated, that is most of a run's time; and
 * QEMU 7.2 now and then crashes it, because its processors may translate a page while another writes it and then go on
 * with the old text: where V8 has replaced a WebAssembly function by its optimized form, they run the one it has freed.
 */
import { readdirSync, readFileSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { join } from "node:path"

const [, , tree = "."] = process.argv
const files = ["src", "test"].flatMap((folder) =>
  readdirSync(join(tree, folder), { recursive: true, encoding: "utf8" }).map((name) => join(folder, name)),
)
for (const name of [...files, "vitest.config.ts"]) {
  if (!name.endsWith(".ts") || name.endsWith(".d.ts")) continue
  const file = join(tree, name)
  const { atime, mtime } = statSync(file)
  const text = stripTypeScriptTypes(readFileSync(file, "utf8")).replaceAll(/(?<=[\w}])\.ts(?=["'`\\])/g, ".js")
  const stripped = file.replace(/\.ts$/, ".js")
  writeFileSync(stripped, text)
  utimesSync(stripped, atime, mtime)
  rmSync(file)
}
