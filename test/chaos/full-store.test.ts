import { execFileSync } from "node:child_process"
import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect } from "vitest"
import { openFolder } from "../e2e/host-world.ts"
import { noRoot, testNeeding } from "../support/needing.ts"

/** Both grow a file in their own way: one has a journal and reserves, the other counts pages of memory. */
const disks = {
  ext4: 'truncate -s 16m "$4" && mkfs.ext4 -q "$4" && mount -o loop "$4" "$1"',
  tmpfs: 'mount -t tmpfs -o size=2m none "$1"',
} as const

describe.each(["ext4", "tmpfs"] as const)("the store on a full disk: %s", (kind) => {
  testNeeding(
    "is told as full at every verb that writes, is read all the same, and has lost and kept nothing",
    noRoot,
    () => {
      const folder = openFolder()
      const disk = join(folder, "disk")
      mkdirSync(disk)
      try {
        const script = `${disks[kind]} && "$2" "$3" "$1"; code=$?; umount -l "$1"; exit $code`
        const program = join(import.meta.dirname, "fixtures/full-store.ts")
        const args = ["--mount", "sh", "-c", script, "sh", disk, process.execPath, program, join(folder, "image")]
        const told = JSON.parse(execFileSync("unshare", args, { encoding: "utf8" })) as Record<string, object>
        const verbs = ["hold", "receipted", "claim", "settle", "release", "offered", "acceptOffer", "changeLogin"]
        expect(told["full"]).toEqual(Object.fromEntries(verbs.map((verb) => [verb, "full"])))
        expect(told).toMatchObject({ made: "full", opened: "full" })
        const states = ["a held", "b held", "c deciding", "d deciding"]
        expect(told["reading"]).toEqual([states, 1, 1])
        expect(told["before"]).toEqual(states)
        expect(told["room"]).toEqual({
          hold: { ok: true },
          receipted: "done",
          claim: true,
          settle: true,
          release: true,
          offered: true,
          acceptOffer: "n",
          changeLogin: 2,
        })
        expect(told["after"]).toEqual(["a deciding", "b held", "c settled", "d held", "new held"])
      } finally {
        rmSync(folder, { recursive: true, force: true })
      }
    },
  )
})
