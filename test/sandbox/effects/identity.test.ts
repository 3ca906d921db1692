import { mkdirSync, mkdtempSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { basename, join } from "node:path"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import { everyBelow, fingerprint } from "../../../src/sandbox/effects/commit/identity.ts"

describe("looking at all that is below a folder", () => {
  let base = ""
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "caisson-below-"))
    for (const folder of ["top/sub", "outside/private"]) mkdirSync(join(base, folder), { recursive: true })
    for (const file of ["top/a", "top/sub/b", "outside/secret"]) writeFileSync(join(base, file), "")
  })
  afterEach(() => rmSync(base, { recursive: true, force: true }))

  const seen = (meanwhile: (path: string) => void = () => {}): { names: string[]; liked: boolean } => {
    const names: string[] = []
    const liked = everyBelow(Buffer.from(join(base, "top")), (_stats, path) => {
      names.push(basename(path.toString()))
      meanwhile(path.toString())
      return true
    })
    return { names: names.sort(), liked }
  }

  it("finds every entry at any depth", () => {
    expect(seen()).toEqual({ names: ["a", "b", "sub"], liked: true })
  })

  it("is not led out by a folder that is swapped for a link once it was seen", () => {
    const swap = (path: string): void => {
      if (!path.endsWith("/sub")) return
      renameSync(path, `${path}-away`)
      symlinkSync(join(base, "outside"), path)
    }
    const { names, liked } = seen(swap)
    expect(names).not.toContain("secret")
    expect(liked).toBe(false)
  })

  it("tells two trees apart by their entries, and finds one unchanged", () => {
    const top = Buffer.from(join(base, "top"))
    const before = fingerprint(top)
    expect(fingerprint(top)).toBe(before)
    writeFileSync(join(base, "top/sub/c"), "")
    expect(fingerprint(top)).not.toBe(before)
  })
})
