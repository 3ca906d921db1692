import { spawn } from "node:child_process"
import { once } from "node:events"
import { writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { noRoot, testNeeding } from "../../support/needing.ts"
import { OwnerMaps } from "../../../src/sandbox/layers/owner-maps.ts"

const owner = { uid: 1000, gid: 1000 }
const sandbox = { uid: 2000, gid: 2000 }

describe("a helper for id maps that does not do its work", () => {
  test("is not waited for when it ends without an answer, and its own words are passed on", async () => {
    const maps = new OwnerMaps({ helper: ["/bin/sh", "-c", "echo no room left >&2; exit 3"] })
    await expect(maps.get(owner, sandbox)).rejects.toThrow(/ended with 3: no room left/)
    await maps.dispose()
  })
  test("is not waited for when it is not there", async () => {
    const maps = new OwnerMaps({ helper: ["/nowhere/unshare"] })
    await expect(maps.get(owner, sandbox)).rejects.toThrow(/could not be started/)
    await maps.dispose()
  })
  test("is not waited for beyond its deadline when it hangs", async () => {
    const maps = new OwnerMaps({ helper: ["/bin/sleep", "600"], withinMs: 50 })
    await expect(maps.get(owner, sandbox)).rejects.toThrow(/did not answer within 50 ms/)
    await maps.dispose()
  })
  test("is not believed when it made no namespace", async () => {
    const maps = new OwnerMaps({ helper: ["/bin/cat"] })
    await expect(maps.get(owner, sandbox)).rejects.toThrow(/no user namespace was made/)
    await maps.dispose()
  })
})

testNeeding(
  "a machine out of user namespaces refuses one call, and serves the next once there is room again",
  noRoot,
  async () => {
    const program = fileURLToPath(new URL("./fixtures/starved-owner-maps.ts", import.meta.url))
    // Root over every id of the machine in a namespace whose limits are its own.
    const script = 'echo in; read -r go; exec "$0" --no-warnings "$1"'
    const child = spawn("/usr/bin/unshare", ["--user", "/bin/sh", "-c", script, process.execPath, program], {
      stdio: ["pipe", "pipe", "inherit"],
    })
    let text = ""
    child.stdout.setEncoding("utf8").on("data", (chunk: string) => {
      text += chunk
    })
    await once(child.stdout, "data")
    for (const map of ["uid_map", "gid_map"]) writeFileSync(`/proc/${child.pid}/${map}`, "0 0 4294967295")
    child.stdin.end("go\n")
    await once(child, "close")
    const said = JSON.parse(text.slice(text.indexOf("{"))) as { starved: string; fed: string }
    expect(said.starved).toMatch(/could not be mapped.*unshare.*No space left|could not be mapped.*unshare failed/)
    expect(said.fed).toBe("mapped")
  },
)
