import { execFileSync } from "node:child_process"
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"

it("receipts go on into a reserve when the disk is full, and fail without harm when that is used up", () => {
  const disk = mkdtempSync(join(tmpdir(), "caisson-full-"))
  try {
    const script = 'mount -t tmpfs -o size=8m tmpfs "$1" && exec "$2" "$3" "$1"'
    const said = execFileSync(
      "unshare",
      [
        "--user",
        "--map-root-user",
        "--mount",
        "sh",
        "-c",
        script,
        "sh",
        disk,
        process.execPath,
        join(import.meta.dirname, "host-full-disk.ts"),
      ],
      { encoding: "utf8" },
    )
    const { written, failed, verdict } = JSON.parse(said) as { written: number; failed: boolean; verdict: object }
    expect(written).toBeGreaterThan(100)
    expect(failed).toBe(true)
    expect(verdict).toMatchObject({ ok: true })
  } finally {
    rmSync(disk, { recursive: true, force: true })
  }
})
