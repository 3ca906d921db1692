/**
 * `node scripts/run.mjs 'COMMAND'`: installs the packages, then runs a shell command in which `node` is the pinned one and the programs of
 * the packages are there; npm's other scripts go through it. Words that follow are the command's.
 *
 * Guarantees: the command's exit code; it does not outlive this.
 */
import { environmentWith, runToEnd } from "./house.mjs"
import { setup } from "./setup.mjs"

const [command = "true", ...words] = process.argv.slice(2)
const node = setup({ packagesOnly: true })
process.exitCode = await runToEnd("/bin/sh", ["-c", `${command} "$@"`, "sh", ...words], { env: environmentWith(node) })
