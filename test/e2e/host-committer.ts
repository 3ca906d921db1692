/** A host in a process of its own that commits many files, to be killed over it: `host-committer BACKEND DATA WORKSPACE`. */
import { createHost } from "../../src/host/index.ts"
import { fixtureTools } from "./host-world.ts"

const [backend, data, workspace] = process.argv.slice(2)
if ((backend !== "namespace" && backend !== "docker") || data === undefined || workspace === undefined)
  throw new Error("usage: host-committer BACKEND DATA WORKSPACE")
const host = await createHost({ data, manifests: [fixtureTools], backend })
await host.call({ tool: "fixture.act", input: { verb: "read", args: ["README.md"] }, workspace }, { approved: true })
process.stdout.write("ready\n")
await host.call(
  { tool: "fixture.act", input: { verb: "many", args: ["notes", "2000"] }, workspace },
  { approved: true },
)
process.stdout.write("done\n")
