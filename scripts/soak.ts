/**
 * Soaks: what must stand for a minute and leave nothing. `npm run soak [-- tunnels|conversation]`; without a name, all.
 *
 * Fails where one of them does. Words beginning with `--` are theirs (`--seconds=60`).
 */
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"

const all = ["tunnels", "conversation"]
const words = process.argv.slice(2)
const named = words.filter((word) => !word.startsWith("--"))
const unknown = named.find((name) => !all.includes(name))
if (unknown !== undefined) {
  console.error(`there is no soak ${unknown}: ${all.join(", ")}`)
  process.exit(2)
}
const options = words.filter((word) => word.startsWith("--"))
for (const name of named.length > 0 ? named : all) {
  console.log(`== ${name}`)
  const program = fileURLToPath(new URL(`./soak/${name}.ts`, import.meta.url))
  const { status } = spawnSync(process.execPath, ["--no-warnings", "--expose-gc", program, ...options], {
    stdio: "inherit",
  })
  if (status !== 0) process.exitCode = 1
}
