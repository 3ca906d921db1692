/**
 * `npm run bench [-- NAME… --OPTION…]`: runs every measurement in `bench/`, or those whose name contains a NAME, with
 * the pinned Node. Options go to each. A file that exports something is a part of others and not run.
 *
 * Guarantees: one after the other, output passed through; fails if one fails or none matches.
 */
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { environmentWith, root, runToEnd, say } from "./house.mjs"
import { setup } from "./setup.mjs"

const node = setup()
const wanted = process.argv.slice(2).filter((word) => !word.startsWith("-"))
const options = process.argv.slice(2).filter((word) => word.startsWith("-"))
const isMeasurement = (name) =>
  name.endsWith(".ts") && !/^export /m.test(readFileSync(join(root, "bench", name), "utf8"))
const isWanted = (name) => wanted.length === 0 || wanted.some((word) => name.includes(word))
const files = readdirSync(join(root, "bench"))
  .filter((name) => isMeasurement(name) && isWanted(name))
  .sort()
if (files.length === 0) {
  say(`caisson: no bench matches ${wanted.join(" ") || "(none are there)"}`)
  process.exitCode = 2
}
for (const name of files) {
  say(`bench/${name}`)
  const code = await runToEnd(node, [join(root, "bench", name), ...options], { env: environmentWith(node) })
  if (code !== 0) process.exitCode = 1
}
