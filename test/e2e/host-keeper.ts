/** A host in a process of its own that keeps a server and does nothing else. */
import { createHost } from "../../src/host/index.ts"

const [data, workspace, manifests, config] = process.argv.slice(2)
if (data === undefined || workspace === undefined || manifests === undefined || config === undefined)
  throw new Error("usage: host-keeper DATA WORKSPACE MANIFESTS CONFIG")
const host = await createHost({ data, manifests: [manifests], config })
const planted = await host.call(
  { tool: "notes.act", input: { verb: "plant", args: ["a"] }, workspace, driver: "notes-server" },
  { approved: true },
)
process.stdout.write(`${JSON.stringify(planted)}\n`)
setInterval(() => undefined, 3_600_000)
