/** A host on a data folder whose disk is full when a call is to be held, and when one is decided: `held-full-disk DISK WORKSPACE`. */
import { appendFileSync, readdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createHost, readReceipts, verifyChain } from "../../src/host/index.ts"
import { fixtureTools } from "./host-world.ts"

const [disk = "", workspace = ""] = process.argv.slice(2)
const data = join(disk, "data")
const host = await createHost({ data, manifests: [fixtureTools] })
const call = (name: string) =>
  host.call({ tool: "fixture.act", input: { verb: "write", args: [`notes/${name}.txt`, "x"] }, workspace })
const fill = (): void => {
  try {
    for (;;) appendFileSync(join(disk, "fill"), Buffer.alloc(65_536, 1))
  } catch {
    // That the disk is full is the point.
  }
}
const first = await call("first")
fill()
const second = await call("second")
const decided = await host.decide(first.call, "approve")
const atFull = readdirSync(join(data, "held"))
rmSync(join(disk, "fill"))
const again = await host.decide(first.call, "approve")
await host.close()
process.stdout.write(
  JSON.stringify({
    first: first.ok ? "ok" : first.error,
    second: second.ok ? "ok" : second.error,
    decided: decided.ok ? "ok" : decided.error,
    again: again.ok ? "ok" : again.error,
    atFull,
    held: readdirSync(join(data, "held")),
    notes: readdirSync(join(workspace, "notes")),
    receipts: readReceipts(data, { call: first.call }).map(({ metadata }) => metadata?.["verdict"]),
    verdict: await verifyChain(data),
  }),
)
