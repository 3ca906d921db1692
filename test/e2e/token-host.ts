/**
 * A host as a process of its own, whose roots are the test's: `node token-host.ts CONFIG DATA WORK`. Reads one order a
 * line, `{ user, login? }` or `{ user, verb, with }`, and answers each with a line.
 */
import { createInterface } from "node:readline"
import { createHost, processCaller } from "../../src/host/index.ts"

const [, , config = "", data = "", workspace = ""] = process.argv
await using host = await createHost({ config, data })
const say = (line: object): void => void process.stdout.write(`${JSON.stringify(line)}\n`)
for await (const line of createInterface({ input: process.stdin })) {
  const order = JSON.parse(line) as { user: string; login?: true; logout?: true; verb?: string; with?: string }
  const caller = processCaller(order.user)
  if (order.login === true) {
    const open = ({ url }: { readonly url: string }): void => say({ open: url })
    say({ answer: await host.login("keeper", { caller, workspace, person: { open } }) })
    continue
  }
  if (order.logout === true) {
    say({ answer: await host.logout("keeper", { caller, workspace }) })
    continue
  }
  const input = { verb: order.verb ?? "", with: order.with ?? "" }
  say({ answer: await host.call({ tool: "keeper.do", input, workspace }, { caller, approved: true }) })
}
