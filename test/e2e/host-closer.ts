/** A program whose last work is to close its host, again and again: `host-closer DATA WORKSPACE`. */
import { createHost } from "../../src/host/index.ts"
import { fixtureTools } from "./host-world.ts"

const [data = "", workspace = ""] = process.argv.slice(2)
const read = { tool: "fixture.act", input: { verb: "read", args: ["README.md"] }, workspace }
for (let round = 0; round < 4; round += 1) {
  const host = await createHost({ data, manifests: [fixtureTools] })
  for (let calls = 0; calls < 2; calls += 1) await host.call(read)
  await host.close()
}
process.stdout.write("closed\n")
