/** A process of its own that claims held calls: `claimant.ts FILE NAME ID…`, one line for each that it was given. */
import { openSqliteStore } from "../../../src/host/store/sqlite.ts"
import { later } from "./instants.ts"

const [file = "", name = "", ...ids] = process.argv.slice(2)
await using store = await openSqliteStore(file)
process.stdout.write("ready\n")
await new Promise((resolve) => process.stdin.once("data", resolve))
for (const id of ids) if ((await store.claim(id, "approve", name, later(1))).ok) process.stdout.write(`${id}\n`)
process.stdin.destroy()
