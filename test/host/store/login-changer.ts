/** A process of its own that changes one login so many times: `login-changer.ts FILE NAME TIMES`, a line for each generation. */
import { openSqliteStore } from "../../../src/host/store/sqlite.ts"

const [file = "", name = "", times = "0"] = process.argv.slice(2)
const key = { tenant: "local", driver: "gh@1 file:/a", workspace: "w-1", user: "alice" }
await using store = await openSqliteStore(file)
for (let made = 0; made < Number(times); ) {
  const seen = await store.login(key)
  const facts = { name, manifest: "sha256:a", freshness: made, setup: {} }
  const changed = await store.changeLogin(key, seen?.generation ?? 0, { state: "authed", facts })
  if (changed === undefined) continue
  made += 1
  process.stdout.write(`${changed.generation}\n`)
}
