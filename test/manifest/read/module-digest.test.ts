import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { limits } from "../../../src/manifest/limits.ts"
import { moduleDigest } from "../../../src/manifest/read/module-digest.ts"
import { sha256 } from "../../../src/manifest/values/digest.ts"

let root: string
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "caisson-module-")))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))
const put = (path: string, text: string | Uint8Array): string => {
  const file = join(root, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, text)
  return file
}
const digest = (file: string): string => {
  const answer = moduleDigest(file)
  if (!answer.ok) throw new Error(answer.why)
  return answer.digest
}

describe("the digest of a module", () => {
  it("is that of its bytes where it names no other file", () => {
    const text = 'import { readFileSync } from "node:fs"\nimport x from "x"\nexport default "./nowhere.ts"\n'
    expect(digest(put("d/driver.ts", text))).toBe(sha256(text))
  })
  it.each([
    ["an import", 'import { a } from "./lib/a.ts"', "lib/a.ts"],
    ["an import for its effect", "import './a.mjs'", "a.mjs"],
    ["an export", 'export * from "./a.ts"', "a.ts"],
    ["an import when it runs", "await import(`./a.ts`)", "a.ts"],
    ["a require without an ending", 'require("./a")', "a.js"],
    ["a require of a folder", 'require("./a")', "a/index.js"],
    ["what is read", 'new URL("./table.json", import.meta.url)', "table.json"],
  ])("changes with a file that it names by %s", (_, text, path) => {
    const file = put("d/driver.ts", text)
    const without = digest(file)
    put(`d/${path}`, "1")
    const one = digest(file)
    put(`d/${path}`, "2")
    expect(new Set([without, one, digest(file)]).size).toBe(3)
  })
  it("changes with what those name in turn, from where they lie, and does not run in circles", () => {
    const file = put("d/driver.ts", 'import "./lib/a.ts"')
    put("d/lib/a.ts", 'import "../b.ts"\nimport "../driver.ts"')
    put("d/b.ts", 'import "./lib/a.ts"')
    const before = digest(file)
    expect(digest(file)).toBe(before)
    put("d/b.ts", 'import "./lib/a.ts" // more')
    expect(digest(file)).not.toBe(before)
  })
  it("stays with files beside it that it does not name, and with any above its folder", () => {
    const file = put("d/driver.ts", 'import "../above.ts"\nimport "./inside.ts"')
    put("above.ts", "1")
    symlinkSync(join(root, "above.ts"), join(root, "d/inside.ts"))
    const before = digest(file)
    put("d/notes.ts", "1")
    put("above.ts", "2")
    expect(digest(file)).toBe(before)
  })
  it("is none where the file is not there, is a link, or names too much", () => {
    expect(moduleDigest(join(root, "driver.ts"))).toMatchObject({ ok: false })
    symlinkSync(put("real.ts", ""), join(root, "driver.ts"))
    expect(moduleDigest(join(root, "driver.ts"))).toMatchObject({ ok: false })
    const names = Array.from({ length: limits.moduleFiles + 1 }, (_, at) => `f${at}.ts`)
    for (const name of names) put(`d/${name}`, "")
    const all = (count: number): string =>
      names
        .slice(0, count)
        .map((name) => `import "./${name}"`)
        .join("\n")
    expect(moduleDigest(put("d/driver.ts", all(limits.moduleFiles)))).toMatchObject({ ok: true })
    expect(moduleDigest(put("d/driver.ts", all(limits.moduleFiles + 1)))).toMatchObject({ ok: false })
    const half = new Uint8Array(limits.moduleBytes / 2)
    for (const name of ["one.bin", "two.bin"]) put(`e/${name}`, half)
    expect(moduleDigest(put("e/driver.ts", '["./one.bin", "./two.bin"]'))).toMatchObject({ ok: false })
  })
})
