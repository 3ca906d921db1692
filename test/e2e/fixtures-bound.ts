/** In a mount namespace of its own: the data folder, or a part of it, seen at other places, each used as a workspace. */
import { mkdirSync, writeFileSync, writeSync } from "node:fs"
import { join } from "node:path"
import { createHost } from "../../src/host/index.ts"
import { mount, MS } from "../../src/linux/mounts.ts"
import { fixtureTools } from "./host-world.ts"

const base = process.argv[2] ?? ""
const at = (...names: string[]): string => join(base, ...names)
for (const dir of ["home/data/keys", "whole", "part", "above", "safe", "plain"])
  mkdirSync(at(dir), { recursive: true, mode: 0o700 })
writeFileSync(at("caisson.yaml"), "", { mode: 0o600 })
await using host = await createHost({ data: at("home/data"), manifests: [fixtureTools], config: at("caisson.yaml") })
const bind = (from: string, to: string): void => mount(at(from), at(to), null, MS.BIND, null)
bind("home/data", "whole")
bind("home/data/keys", "part")
bind("home", "above")
bind("plain", "safe")
const found: Record<string, string> = {}
for (const name of ["whole", "whole/keys", "part", "above", "home", "home/data", "safe", "plain"]) {
  const call = { tool: "fixture.act", input: { verb: "read", args: ["x"] }, workspace: at(name) }
  const report = await host.why(call)
  found[name] =
    report.error === undefined ? "ok" : `${report.error.code}: ${report.error.message.split(" ").slice(3, 8).join(" ")}`
}
writeSync(1, JSON.stringify(found))
