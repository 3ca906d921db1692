/** A host in a process of its own that holds a call, says its id, and stays: `host-holder DATA WORKSPACE`. */
import { createHost } from "../../src/host/index.ts"
import { fixtureTools } from "./host-world.ts"

const [data = "", workspace = ""] = process.argv.slice(2)
const host = await createHost({ data, manifests: [fixtureTools] })
const input = { verb: "write", args: ["notes/new.txt", "by the tool"] }
const { call } = await host.call({ tool: "fixture.act", input, workspace })
process.stdout.write(`${call}\n`)
setInterval(() => undefined, 1_000)
