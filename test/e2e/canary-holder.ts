/** A host whose memory holds a secret, in a process that is there to crash: `canary-holder DATA WORKSPACE MANIFESTS`. */
import { createHost, processCaller } from "../../src/host/index.ts"

const [data, workspace, manifests] = process.argv.slice(2)
if (data === undefined || workspace === undefined || manifests === undefined)
  throw new Error("usage: canary-holder DATA WORKSPACE MANIFESTS")
const host = await createHost({ data, manifests: [manifests] })
await host.secrets.set("teller-key", process.env["CANARY"] ?? "", { user: "alice", driver: "teller" })
const told = await host.call(
  { tool: "fixture.tell", input: { how: "digest" }, workspace },
  { caller: processCaller("alice") },
)
process.stdout.write(`${JSON.stringify(told)}\n`)
setInterval(() => undefined, 60_000)
