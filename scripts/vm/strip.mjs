/**
 * `node strip.mjs FOLDER`: every TypeScript file of a copied work tree becomes the JavaScript that Node makes of it.
 *
 * Guarantees: the same text at the same place, with blanks for types, under a name that ends in `.js`; what names such a
 * file in a string names it so; each keeps the time of its last change, so that `dist` stays newer.
 * Why: Node strips types in WebAssembly at every start of a host or launcher. Emulated, that is most of a run's time, and
 * some starts crash in it (4 of about 24 seen, with QEMU 7.2 and two processors). One core was read: V8, asked to optimize
 * the function of WebAssembly that it is in, knows no code at that address. Whether QEMU or V8 is at fault is not shown;
 * a guess is that a processor of QEMU went on with text that another had overwritten.
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
