/**
 * `npm start`: set-up, a tour of real sealed calls that one can watch, then the daemon.
 *
 * Guarantees: a tour that fails ends this with its exit code. `--once` ends after the tour; else the daemon runs in the
 * foreground, with its address and, on a data folder that has none, a first token told once, until it is told to end.
 */
import { join } from "node:path"
import { entryOf, root, runToEnd, say } from "./house.mjs"
import { setup } from "./setup.mjs"

const node = setup()
let code = await runToEnd(node, [entryOf("cli/tour")])
if (code === 0 && !process.argv.includes("--once")) {
  say("")
  say("The daemon comes next; Ctrl-C ends it. From another terminal:")
  say("  npx caisson tools                                   what can be called")
  say('  npx caisson call json.query -i \'{"filter": ".a", "document": {"a": 1}}\'')
  say("  npx caisson why files.list                          which driver, and the sealed profile it gets")
  say("  npx caisson doctor                                  which controls hold on this machine")
  say("")
  code = await runToEnd(node, [join(root, "bin", "caisson.cjs"), "serve", "--tell-token"])
}
process.exitCode = code
