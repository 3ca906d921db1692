import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"
import { modes } from "../sandbox/effects/fixtures/workspaces.ts"

interface Outcome {
  readonly room: string
  readonly ok: boolean
  readonly message: string
  readonly intact: boolean
  readonly leftovers: number
}

/** In the words of whoever reads it: a file of the workspace or a folder they know, never one of the host's own. */
const told = (room: string): RegExp =>
  room === "read-only"
    ? /^the top folder takes nothing new: the file system is read-only \(EROFS\)$/
    : /^(the data folder|the top folder takes nothing new|[a-z][^ .:]*(\.[a-z]+)?): the disk is full \(ENOSPC\)$/

describe.each(modes)("a workspace without room for the commit, in %s mode", (mode) => {
  it("stays as it was, for lack of bytes and for lack of inodes, and takes the commit when there is room", () => {
    const program = [process.execPath, fileURLToPath(new URL("./fixtures/full-disk.ts", import.meta.url)), mode]
    const argv = mode === "root" ? ["-m", "--propagation", "private", ...program] : ["-Urm", ...program]
    const done = spawnSync("unshare", argv, { encoding: "utf8" })
    expect(done.stderr).toBe("")
    const outcomes = JSON.parse(done.stdout) as Outcome[]
    for (const outcome of outcomes) {
      expect(outcome, JSON.stringify(outcome)).toMatchObject({ intact: !outcome.ok, leftovers: 0 })
      if (!outcome.ok) expect(outcome.message, outcome.room).toMatch(told(outcome.room))
    }
    expect(outcomes.filter((outcome) => !outcome.ok && outcome.room === "read-only")).toHaveLength(1)
    expect(outcomes.some((outcome) => outcome.ok)).toBe(true)
    expect(outcomes.filter((outcome) => !outcome.ok && outcome.room.includes("inodes")).length).toBeGreaterThan(3)
    expect(outcomes.some((outcome) => !outcome.ok && outcome.room.startsWith("size=1"))).toBe(true)
  })
})
