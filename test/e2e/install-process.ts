/** Installs one npm package on a data folder, as a process of its own: `node install-process.ts DATA NAME`. */
import { layerOf, npm, openInstallCore } from "./install-world.ts"

const [, , data = "", name = ""] = process.argv
await using core = await openInstallCore(data)
process.stdout.write(`${layerOf(await core.installs.ensure(npm(name))).digest}\n`)
