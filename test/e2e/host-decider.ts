/** A host in a process of its own that answers held calls when it is told to: `host-decider DATA ANSWER BACKEND`, then a call's id a line. */
import { createInterface } from "node:readline"
import { createHost } from "../../src/host/index.ts"
import { fixtureTools } from "./host-world.ts"

const [data = "", answer = "", backend = ""] = process.argv.slice(2)
await using host = await createHost({ data, manifests: [fixtureTools], backend: backend as "namespace" })
process.stdout.write("ready\n")
for await (const id of createInterface({ input: process.stdin })) {
  const decided = await host.decide(id, answer as "approve" | "deny")
  process.stdout.write(`${decided.ok ? "ok" : decided.error.code}\n`)
}
