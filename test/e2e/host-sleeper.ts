/** A host in a process of its own, in the middle of a call that never ends. */
import { createHost } from "../../src/host/index.ts"
import { fixtureTools } from "./host-world.ts"

const [data, workspace] = process.argv.slice(2)
if (data === undefined || workspace === undefined) throw new Error("usage: host-sleeper DATA WORKSPACE")
const host = await createHost({ data, manifests: [fixtureTools] })
// The first call finishes, so that version checks and the launcher's start are behind it.
await host.call(
  { tool: "fixture.act", input: { verb: "write", args: ["notes/first.txt", "x"] }, workspace },
  { approved: true },
)
process.stdout.write("ready\n")
await host.call(
  { tool: "fixture.act", input: { verb: "sleep", args: ["notes/slow.txt"] }, workspace },
  { approved: true },
)
