import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"

it("the data folder is no workspace under any name that a bind mount gives it, its parts or what holds it", () => {
  const base = mkdtempSync(join(tmpdir(), "caisson-bound-"))
  try {
    const program = [process.execPath, join(import.meta.dirname, "fixtures-bound.ts"), base]
    const how = process.getuid?.() === 0 ? ["-m", "--propagation", "private"] : ["-Urm"]
    const done = spawnSync("unshare", [...how, ...program], { encoding: "utf8" })
    expect(done.stderr).toBe("")
    const found = JSON.parse(done.stdout) as Record<string, string>
    for (const name of ["whole", "whole/keys", "part", "above", "home", "home/data"])
      expect(found[name], name).toMatch(/^policy_violation/)
    for (const name of ["safe", "plain"]) expect(found[name], name).not.toMatch(/^policy_violation/)
  } finally {
    rmSync(base, { recursive: true, force: true })
  }
})
