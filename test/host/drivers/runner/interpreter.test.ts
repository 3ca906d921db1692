import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, afterEach, beforeEach, describe, expect, it } from "vitest"
import { testNeeding } from "../../../support/needing.ts"
import { shownFolder } from "../../../support/shown-folder.ts"
import { findInterpreter } from "../../../../src/host/drivers/runner/interpreter.ts"

let folder = ""
beforeEach(() => {
  folder = realpathSync(mkdtempSync(join(tmpdir(), "caisson-interpreter-")))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const elsewhere = shownFolder("interpreter")
afterAll(() => {
  if (elsewhere.folder !== undefined) rmSync(elsewhere.folder, { recursive: true, force: true })
})

const config = { interpreters: {} }
const find = (language: "node" | "python") => findInterpreter(language, [{ folder, inside: "/opt/driver" }], config)
const put = (path: string, make: (at: string) => void): void => {
  mkdirSync(join(folder, path, ".."), { recursive: true })
  make(join(folder, path))
}

describe("the interpreter of a module", () => {
  it("is the host's own where the driver brings none", () => {
    expect(find("node")).toMatchObject({ ok: true, interpreter: { program: realpathSync(process.execPath) } })
    expect(find("python")).toMatchObject({
      ok: true,
      interpreter: { inside: expect.stringContaining("python3") as string },
    })
  })
  it("is not the operator's where a sandbox has something of its own in its place", () => {
    put("bin/python3", (at) => copyFileSync("/usr/bin/env", at))
    const hidden = findInterpreter("python", [], { interpreters: { python: join(folder, "bin/python3") } })
    expect(hidden).toMatchObject({ ok: false })
  })
  testNeeding("is the operator's where that names one", elsewhere.missing, () => {
    const named = join(elsewhere.folder as string, "bin/python3")
    mkdirSync(join(named, ".."))
    copyFileSync("/usr/bin/env", named)
    expect(findInterpreter("python", [], { interpreters: { python: named } })).toMatchObject({
      ok: true,
      interpreter: { inside: named },
    })
  })
  it("is the Node beside the driver's packages", () => {
    put("node_modules/node-here/bin/node", (at) => {
      writeFileSync(at, "#!/bin/sh\n")
      chmodSync(at, 0o755)
    })
    put("node_modules/.bin/node", (at) => symlinkSync("../node-here/bin/node", at))
    expect(find("node")).toMatchObject({
      ok: true,
      interpreter: { inside: "/opt/driver/node_modules/.bin/node", spawn: {} },
    })
  })
  it("is that of a virtual environment, with the system's program that it leads to", () => {
    put(".venv/bin/python3", (at) => symlinkSync("/usr/bin/python3", at))
    const found = find("python")
    expect(found).toMatchObject({ ok: true, interpreter: { inside: "/opt/driver/.venv/bin/python3" } })
    expect(found.ok && Object.values(found.interpreter.spawn)).toContain("/usr/bin/python3")
  })
  it.each(["/etc/passwd", "../../outside", "/root/python3"])("is none that leads out of the folder: %s", (target) => {
    put(".venv/bin/python3", (at) => symlinkSync(target, at))
    expect(find("python")).toMatchObject({ ok: false, reason: expect.stringContaining(".venv/bin/python3") as string })
  })
})
