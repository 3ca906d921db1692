/**
 * `npm start`: set-up, then a tour of real sealed calls that one can watch.
 *
 * Guarantees: the exit code is the tour's, which does not outlive this. `--once` ends after the tour; there is no daemon yet, so without it this
 * says what to do next and ends too.
 */
import { entryOf, runToEnd, say } from "./house.mjs"
import { setup } from "./setup.mjs"

const node = setup()
const code = await runToEnd(node, [entryOf("cli/tour")])
if (code === 0 && !process.argv.includes("--once")) {
  say("")
  say("There is no daemon yet, so this ends here. Next:")
  say("  npx caisson tools                                   what can be called")
  say('  npx caisson call json.query -i \'{"filter": ".a", "document": {"a": 1}}\'')
  say("  npx caisson why files.list                          which driver, and the sealed profile it gets")
  say("  npx caisson doctor                                  which controls hold on this machine")
}
process.exitCode = code
