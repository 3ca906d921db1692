import { spawnSync } from "node:child_process"
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { isNewEnough, neededNode } from "../../src/manifest/node-version.ts"

const root = join(import.meta.dirname, "../..")
const oldNode = "/usr/bin/node"
const version = /^v(\S+)/.exec(spawnSync(oldNode, ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1]

const isBuilt = (): boolean => {
  const built = statSync(join(root, "dist/.built"), { throwIfNoEntry: false })?.mtimeMs ?? 0
  const sources = readdirSync(join(root, "src"), { recursive: true, withFileTypes: true })
  return sources.every((entry) => statSync(join(entry.parentPath, entry.name)).mtimeMs < built)
}

test("the Node that is asked for is that of package.json", () => {
  const { engines } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { engines: { node: string } }
  expect(engines.node).toBe(`>=${neededNode.join(".")}`)
  expect(["18.20.8", "24.14.9", "24.15.0", "24.21.0", "26.0.0"].map(isNewEnough)).toEqual([
    false,
    false,
    true,
    true,
    true,
  ])
})

test.for(["host", "egress-proxy", "sandbox", "manifest"])(
  "the library says which Node it needs when an old one imports it: %s",
  (room, { skip }) => {
    if (version === undefined || isNewEnough(version))
      skip("needs a Node older than 24 at /usr/bin/node: apt-get install -y nodejs")
    if (!isBuilt()) skip("needs a dist that is newer than every source: npm run build")
    const entry = join(root, "dist", room, "index.js")
    const program = `await import(${JSON.stringify(entry)})`
    const run = spawnSync(oldNode, ["--input-type=module", "-e", program], { encoding: "utf8" })
    expect(run.stderr).toContain(`Caisson needs Node ${neededNode.join(".")} or later, and this is Node ${version}`)
    expect(run.status).not.toBe(0)
  },
)
