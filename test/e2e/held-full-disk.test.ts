import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { expect } from "vitest"
import { noRoot, testNeeding } from "../support/needing.ts"
import { openFolder } from "./host-world.ts"

testNeeding(
  "on a full disk no call is run only to be lost, and one that is held is decided once, then or later",
  noRoot,
  () => {
    const folder = openFolder()
    const [disk, workspace] = [join(folder, "disk"), join(folder, "work")]
    mkdirSync(disk)
    mkdirSync(join(workspace, "notes"), { recursive: true })
    try {
      const image = join(folder, "image")
      const script =
        'truncate -s 96m "$4" && mkfs.ext4 -q "$4" && mount -o loop "$4" "$1" && chmod 700 "$1" && "$2" "$3" "$1" "$5"; code=$?; umount -l "$1"; exit $code'
      const program = join(import.meta.dirname, "held-full-disk.ts")
      const said = execFileSync(
        "unshare",
        ["--mount", "sh", "-c", script, "sh", disk, process.execPath, program, image, workspace],
        { encoding: "utf8" },
      )
      const told = JSON.parse(said) as Record<string, unknown>
      expect(told["first"]).toMatchObject({ code: "approval_required" })
      // Which write there was no room for first, its note or its layer, is chance: it is refused all the same, and says why.
      expect(told["second"]).toMatchObject({
        class: "infrastructure",
        message: expect.stringMatching(/\b(?:is|nearly) full\b|no space left/i),
      })
      expect(told["notes"]).not.toContain("second.txt")
      // Where there was no room for the decision either, it was made when there was.
      expect([told["decided"], told["again"]]).toContain("ok")
      expect(told).toMatchObject({ notes: ["first.txt"], held: [], verdict: { ok: true } })
      expect((told["receipts"] as string[]).filter((verdict) => verdict === "ok")).toHaveLength(1)
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  },
)
