import { spawnSync } from "node:child_process"
import { mkdtempSync, readdirSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"

const from = (path: string): string => JSON.stringify(new URL(`../../../src/sandbox/${path}`, import.meta.url).href)
const source = `
import { mkdirSync } from "node:fs"
import { removeTree } from ${from("effects/commit/recovery/remove.ts")}
import { openRoot } from ${from("effects/beneath.ts")}
import { fromBuffer } from ${from("effects/names.ts")}
const parent = openRoot(process.argv[1])
let deep = process.argv[1]
for (let depth = 0; depth < 900; depth += 1) mkdirSync((deep += "/a"), depth % 100 === 99 ? 0o700 : 0o755)
removeTree(parent, fromBuffer(Buffer.from("a")))`

it("removes a tree that is deeper than this process may hold descriptors", () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-remove-"))
  try {
    const limited = ["-c", 'ulimit -n 128; exec "$0" --no-warnings --input-type=module-typescript -e "$1" "$2"']
    const { stderr, status } = spawnSync("sh", [...limited, process.execPath, source, folder], { encoding: "utf8" })
    expect({ stderr, status }).toEqual({ stderr: "", status: 0 })
    expect(readdirSync(folder)).toEqual([])
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
})
