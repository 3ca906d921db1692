import { execFileSync } from "node:child_process"
import { copyFileSync, cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { removeFolder } from "../support/remove-folder.ts"
import { openFolder, openWorld } from "./host-world.ts"
import { sdkSuite } from "./sdk-cases.ts"

describe("a driver of kind sdk, with the namespace backend", () => sdkSuite("namespace", () => ""))

const PYTHON = `import sys, extra

class Notes:
    def __init__(self, prefix):
        pass

    def act(self, **given):
        return {"data": [{"said": sys.prefix + " " + extra.word}]}

def count(to):
    return []
`
const NODE = `export class Notes {
  act() {
    return { data: [{ said: process.execPath }] }
  }
}
export const count = () => []
`

it("a module is run by the interpreter that its driver brings: a virtual environment, a Node beside its packages", async () => {
  const folder = openFolder()
  try {
    cpSync(join(import.meta.dirname, "../../fixtures/sdk"), folder, { recursive: true })
    const environment = join(folder, "python-local/.venv")
    execFileSync("/usr/bin/python3", ["-m", "venv", "--without-pip", environment])
    const [version = ""] = readdirSync(join(environment, "lib"))
    writeFileSync(join(environment, "lib", version, "site-packages/extra.py"), "word = 'of its own'\n")
    writeFileSync(join(folder, "python-local/notes/__init__.py"), PYTHON)
    const beside = join(folder, "node-local/node_modules")
    for (const name of [".bin", "node-here/bin"]) mkdirSync(join(beside, name), { recursive: true })
    copyFileSync(process.execPath, join(beside, "node-here/bin/node"))
    symlinkSync("../node-here/bin/node", join(beside, ".bin/node"))
    writeFileSync(join(folder, "node-local/lib/notes.ts"), NODE)
    await using world = await openWorld("", { manifests: [folder] })
    const said = async (driver: string): Promise<unknown> => {
      const envelope = await world.call("sdk.notes", { verb: "x" }, { driver })
      return envelope.ok ? envelope.value : envelope.error
    }
    expect(await said("sdk-python")).toEqual({ said: "/opt/driver/.venv of its own" })
    expect(await said("sdk-node")).toEqual({ said: "/opt/driver/node_modules/node-here/bin/node" })
  } finally {
    removeFolder(folder)
  }
})
