/**
 * Calls of a driver that was given a secret, and of others that know what its placeholder is called, as a process of its own,
 * whose roots are the test's: `node placeholder-thief.ts CONFIG DATA WORK ELSEWHERE`.
 */
import { createHost, processCaller } from "../../src/host/index.ts"

const [, , config = "", data = "", workspace = "", elsewhere = ""] = process.argv
await using host = await createHost({ config, data })
await host.secrets.set("sender-token", process.env["TOKEN"] ?? "", { user: "alice", workspace })
const call = async (tool: string, to: object, user: string, where: string): Promise<void> => {
  const envelope = await host.call(
    { tool, input: to as never, workspace: where },
    { caller: processCaller(user), approved: true },
  )
  process.stdout.write(`${JSON.stringify(envelope)}\n`)
}
await call("fixture.send", { host: "api.test" }, "alice", workspace)
await call("thief.send", {}, "alice", workspace)
await call("thief.send", {}, "bob", workspace)
await call("fixture.send", { host: "api.test" }, "bob", workspace)
await call("fixture.send", { host: "api.test" }, "alice", elsewhere)
