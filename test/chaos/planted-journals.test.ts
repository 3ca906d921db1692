import { spawnSync } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import { listTree } from "../sandbox/effects/fixtures/tree.ts"
import { OWNER, OWNER_GROUP } from "../sandbox/effects/fixtures/workspaces.ts"
import { asUser } from "../support/other-user.ts"

const isRoot = process.getuid?.() === 0
const RESERVED = [".caisson-tx", ".caisson-tx-0123456789abcdef0123456789abcdef", ".Caisson-TX"]
const identity = { ino: "1", mode: 0o100644, size: "1", mtimeNs: "1" }

/** What somebody who wants recovery to act for them puts into a repository. */
const attacks: readonly { readonly name: string; readonly plant: (folder: string, home: string) => void }[] = [
  {
    name: "puts a git hook in place",
    plant: (folder) => {
      writeFileSync(join(folder, "slots/0"), "#!/bin/sh\ntouch /tmp/owned\n", { mode: 0o755 })
      const operation = { kind: "remove", path: ".git/hooks/post-checkout", slot: 0, was: identity }
      writeFileSync(join(folder, "journal"), JSON.stringify({ version: 1, workspace: "", operations: [operation] }))
    },
  },
  {
    name: "moves a key of the user's into the workspace",
    plant: (folder, home) => {
      const slot = `../../../../${join(home, ".ssh/id_rsa").slice(join(folder, "../../..").length + 1)}`
      const operation = { kind: "remove", path: "stolen", slot, was: identity }
      writeFileSync(join(folder, "journal"), JSON.stringify({ version: 1, workspace: "", operations: [operation] }))
    },
  },
  { name: "is cut off", plant: (folder) => writeFileSync(join(folder, "journal"), "{") },
  { name: "holds no list", plant: (folder) => writeFileSync(join(folder, "journal"), '{"version":1,"operations":7}') },
  { name: "is a fifo", plant: (folder) => void spawnSync("mkfifo", [join(folder, "journal")]) },
  { name: "says that it is done", plant: (folder) => writeFileSync(join(folder, "done"), "") },
]

describe.each(isRoot ? (["root", "user"] as const) : (["user"] as const))("as %s", (mode) => {
  const owned = isRoot && mode === "user"
  const recover = (backend: string, data: string, workspace: string) => {
    const program = [
      process.execPath,
      join(import.meta.dirname, "fixtures/recover-with.ts"),
      backend,
      data,
      workspace,
    ] as const
    const [first, ...rest] = owned ? asUser({ uid: OWNER, gid: OWNER_GROUP }, program) : program
    return spawnSync(first, rest, { encoding: "utf8", timeout: 40_000 })
  }

  describe.each(["namespace", "docker"])("with the %s backend", (backend) => {
    it.each(attacks)(
      "a journal that comes with the workspace and $name is neither believed nor touched",
      ({ plant }) => {
        const base = mkdtempSync(join(tmpdir(), "caisson-planted-"))
        try {
          const [workspace, home, data] = [join(base, "ws"), join(base, "home"), join(base, "data")]
          for (const dir of [join(workspace, ".git/hooks"), join(home, ".ssh"), data])
            mkdirSync(dir, { recursive: true })
          writeFileSync(join(home, ".ssh/id_rsa"), "private", { mode: 0o600 })
          for (const reserved of RESERVED) {
            const folder = join(workspace, reserved, "tx-0123456789abcdef01234567-1")
            mkdirSync(join(folder, "slots"), { recursive: true })
            chmodSync(join(workspace, reserved), 0o700)
            plant(folder, home)
          }
          if (owned) spawnSync("chown", ["-R", `${OWNER}:${OWNER_GROUP}`, base])
          chownSync(base, owned ? OWNER : (process.getuid?.() ?? 0), owned ? OWNER_GROUP : (process.getgid?.() ?? 0))
          const was = listTree(base, { times: true })
          const done = recover(backend, data, workspace)
          expect(done.error).toBeUndefined()
          expect(done.stderr).toBe("")
          expect(done.status).toBe(0)
          expect(existsSync(join(home, ".ssh/id_rsa"))).toBe(true)
          const mine = (line: string): boolean => !line.startsWith("data/")
          expect(listTree(base, { times: true }).filter(mine)).toEqual(was.filter(mine))
        } finally {
          rmSync(base, { recursive: true, force: true })
        }
      },
    )
  })
})
