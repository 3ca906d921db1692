/** A host in a process of its own, whose program has written to its home and goes on; what it writes comes on stdin. */
import { text } from "node:stream/consumers"
import { createHost } from "../../src/host/index.ts"

const [data, workspace, manifests] = process.argv.slice(2)
if (data === undefined || workspace === undefined || manifests === undefined)
  throw new Error("usage: host-home-holder DATA WORKSPACE MANIFESTS")
const [token = "", kept = "", lost = ""] = JSON.parse(await text(process.stdin)) as readonly string[]
const host = await createHost({ data, manifests: [manifests] })
const tool = "fixture.act"
await host.call({ tool, input: { verb: "write", args: [token, kept] }, workspace }, { approved: true })
await host.call(
  { tool, input: { verb: "sleep", args: [token, lost] }, workspace },
  {
    approved: true,
    onEvent: (event) => {
      if (event.type === "output") process.stdout.write("held\n")
    },
  },
)
