import { execFileSync } from "node:child_process"
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { noRoot, testNeeding } from "../support/needing.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { openDaemonWorld } from "./daemon-world.ts"
import { openFolder } from "./host-world.ts"

describe("the daemon's health", () => {
  it("is told to anybody, names no path, and is ready where calls can be served", async () => {
    await using world = await openDaemonWorld()
    const asked = await world.raw("GET", "/healthz?ready")
    expect(asked).toMatchObject({ status: 200, body: { status: "ok", live: true, ready: true, causes: [] } })
    expect(JSON.stringify(asked.body)).not.toContain(world.folder)
    expect((await world.raw("GET", "/healthz?redy")).status).toBe(400)
  })

  testNeeding(
    "on a full disk of the data folder calls are refused before they run, and the daemon stays up and goes on by itself",
    noRoot,
    () => {
      const folder = openFolder()
      const disk = join(folder, "disk")
      mkdirSync(disk)
      try {
        const script =
          'truncate -s 128m "$4" && mkfs.ext4 -q "$4" && mount -o loop "$4" "$1" && chmod 700 "$1" && "$2" "$3" "$5"; code=$?; umount -l "$1"; exit $code'
        const program = join(import.meta.dirname, "daemon-full-disk.ts")
        const argv = [
          "--mount",
          "sh",
          "-c",
          script,
          "sh",
          disk,
          process.execPath,
          program,
          join(folder, "image"),
          folder,
        ]
        const told = JSON.parse(execFileSync("unshare", argv, { encoding: "utf8" })) as Record<string, object>
        expect(told["before"]).toMatchObject({ call: 200, code: "ok", note: "before", ready: 200 })
        expect(told["full"]).toMatchObject({
          call: 503,
          code: "internal",
          again: expect.stringMatching(/^\d+$/),
          note: "before",
          health: 200,
          ready: 503,
          causes: expect.arrayContaining(["disk_full"]),
        })
        expect(told["after"]).toMatchObject({ call: 200, code: "ok", note: "after", ready: 200, causes: [] })
        expect(told["chain"]).toMatchObject({ ok: true })
      } finally {
        removeFolder(folder)
      }
    },
  )
})
