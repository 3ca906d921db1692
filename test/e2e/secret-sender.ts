/** Calls `fixture.send` as a process of its own, whose roots are the test's: `node secret-sender.ts CONFIG DATA WORK`. */
import { createHost, processCaller } from "../../src/host/index.ts"

const [, , config = "", data = "", workspace = ""] = process.argv
await using host = await createHost({ config, data })
await host.secrets.set("sender-token", process.env["TOKEN"] ?? "", { user: "alice" })
for (const to of ["api.test", "other.test"]) {
  const envelope = await host.call(
    { tool: "fixture.send", input: { host: to }, workspace },
    { caller: processCaller("alice") },
  )
  process.stdout.write(`${JSON.stringify(envelope)}\n`)
}
