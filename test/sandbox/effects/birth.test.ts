import { closeSync, mkdtempSync, openSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, test } from "vitest"
import { birthNsOf } from "../../../src/linux/files.ts"

test("a folder's birth is the kernel's word and stays when its content changes", () => {
  const folder = mkdtempSync(join(tmpdir(), "caisson-birth-"))
  const fd = openSync(folder, "r")
  try {
    const born = birthNsOf(fd)
    expect(born).toBe(statSync(folder, { bigint: true }).birthtimeNs)
    const changedAt = (): bigint => statSync(folder, { bigint: true }).ctimeNs
    const before = changedAt()
    for (let n = 0; changedAt() === before; n += 1) writeFileSync(join(folder, String(n)), "x")
    expect(birthNsOf(fd)).toBe(born)
  } finally {
    closeSync(fd)
    rmSync(folder, { recursive: true })
  }
})
