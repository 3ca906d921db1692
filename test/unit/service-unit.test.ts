/** The unit of systemd that operators copy: systemd itself finds no fault in it, and it starts what there is. */
import { execFileSync } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "vitest"
import { describeNeeding } from "../support/needing.ts"

const root = join(import.meta.dirname, "../..")
const analyze = "/usr/bin/systemd-analyze"
const missing = existsSync(analyze) ? undefined : "no systemd-analyze here: apt-get install -y systemd"

describeNeeding("the unit of systemd", missing, () => {
  const verify = (text: string): string => {
    const folder = mkdtempSync(join(tmpdir(), "caisson-unit-"))
    try {
      const file = join(folder, "caisson.service")
      writeFileSync(file, text)
      return execFileSync(analyze, ["verify", "--man=no", file], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "pipe"],
      })
    } finally {
      rmSync(folder, { recursive: true })
    }
  }
  const unit = (): string => readFileSync(join(root, "deploy/caisson.service"), "utf8").replaceAll("/opt/caisson", root)

  it("has no fault that systemd finds, and one that has is told", () => {
    expect(verify(unit())).toBe("")
    expect(() => verify(unit().replace("bin/caisson.cjs", "bin/nothing"))).toThrow("is not executable")
  })
  it("keeps nothing from the daemon that sandboxes are made of", () => {
    const set = unit()
      .split("\n")
      .filter((line) => /^[A-Z]\w+=/.test(line))
    for (const hindrance of [
      "RestrictNamespaces",
      "PrivateDevices",
      "ProtectProc",
      "ProtectHostname",
      "ProtectKernelTunables",
      "PrivateUsers",
    ])
      expect(set.filter((line) => line.startsWith(`${hindrance}=`))).toEqual([])
  })
})
