/** A daemon whose data folder's disk fills up and has room again. Says what it answered at each stage. */
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { openDaemon } from "../../src/daemon/daemon.ts"
import { verifyChain } from "../../src/host/index.ts"
import { askLocally } from "./daemon-world.ts"
import { fixtureTools } from "./host-world.ts"

const [folder] = process.argv.slice(2)
if (folder === undefined) throw new Error("usage: daemon-full-disk FOLDER")
const data = join(folder, "disk", "data")
const workspace = join(folder, "work")
mkdirSync(join(workspace, "notes"), { recursive: true })
const file = join(folder, "caisson.yaml")
writeFileSync(file, "approvals: { on_mutate: auto }\nserve: { listen: none }\n", { mode: 0o600 })
const daemon = await openDaemon({ data, manifests: [fixtureTools], config: file })
const ask = askLocally(daemon.socket)
const note = join(workspace, "notes", "a.txt")
const stage = async (text: string) => {
  const call = await ask(
    "POST",
    "/v1/calls",
    { tool: "fixture.act", input: { verb: "write", args: ["notes/a.txt", text] }, workspace },
    { "caisson-approved": "yes" },
  )
  const health = await ask("GET", "/healthz")
  const ready = await ask("GET", "/healthz?ready")
  return {
    call: call.status,
    code: call.body["code"] ?? (call.body["ok"] === true ? "ok" : call.body["error"]),
    again: call.headers.get("retry-after"),
    note: existsSync(note) ? readFileSync(note, "utf8") : null,
    health: health.status,
    ready: ready.status,
    causes: (ready.body["causes"] as { cause: string }[]).map(({ cause }) => cause),
  }
}
const before = await stage("before")
const fill = join(folder, "disk", "fill")
try {
  writeFileSync(fill, Buffer.alloc(256 << 20))
} catch {
  // That the disk is full is the point.
}
const full = await stage("full")
rmSync(fill)
const after = await stage("after")
await daemon.close()
process.stdout.write(JSON.stringify({ before, full, after, chain: await verifyChain(data) }))
