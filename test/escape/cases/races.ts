/** Somebody on the host changes the workspace between check and use; a commit must never be led outside. */
import { spawn } from "node:child_process"
import { once } from "node:events"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs"
import { dirname, join } from "node:path"
import { setTimeout as pause } from "node:timers/promises"
import type { EscapeCase, Place } from "../escape-case.ts"

const writesInDocs = `put("/workspace/docs/b.txt", "by the program"); put("/workspace/docs/new.txt", "by the program")`
const swap = ({ workspace, outside }: Place): void => {
  renameSync(`${workspace}/docs`, `${workspace}/docs-away`)
  symlinkSync(outside, `${workspace}/docs`)
}

/** The program waits in plain sight until somebody outside has made what `makesOutside` makes. */
const waitsForOutside = ({ outside }: Place): string => `
mark = ${JSON.stringify(outside)}
while "ready" not in os.listdir("docs"): time.sleep(0.01)`
const isRunning = (mark: string): boolean =>
  readdirSync("/proc").some((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(mark)
    } catch {
      return false
    }
  })
/** Once the program runs: these files, with the secret, and then the sign for the program. */
const makesOutside =
  (paths: readonly string[]) =>
  async ({ workspace, outside, ground }: Place, done: AbortSignal): Promise<void> => {
    while (!done.aborted && !isRunning(`mark = ${JSON.stringify(outside)}`)) await pause(5)
    if (done.aborted) return
    for (const path of paths) {
      mkdirSync(dirname(join(workspace, path)), { recursive: true })
      writeFileSync(join(workspace, path), ground.token)
    }
    writeFileSync(join(workspace, "docs/ready"), "")
  }

export const races: readonly EscapeCase[] = [
  {
    name: "a folder swapped for a symlink before the commit is a conflict, and nothing is written through it",
    language: "python",
    source: writesInDocs,
    effects: ["modify", "create"],
    beforeCommit: swap,
    commits: "conflict",
    breaches: ({ outside }) => (readdirSync(outside).join() === "untouched" ? [] : ["written through the symlink"]),
  },
  {
    name: "a file swapped for a symlink before the commit is a conflict, and its target stays",
    language: "python",
    source: `put("/workspace/a.txt", "by the program")`,
    effects: ["modify"],
    beforeCommit({ workspace, outside }) {
      rmSync(`${workspace}/a.txt`)
      symlinkSync(`${outside}/untouched`, `${workspace}/a.txt`)
    },
    commits: "conflict",
  },
  {
    name: "a symlink planted where the program creates a file is a conflict, and its target stays",
    language: "python",
    source: `put("/workspace/made", "by the program")`,
    effects: ["create"],
    beforeCommit: ({ workspace, outside }) => symlinkSync(`${outside}/untouched`, `${workspace}/made`),
    commits: "conflict",
  },
  {
    name: "a file that somebody else changed meanwhile is not overwritten",
    language: "python",
    source: `put("/workspace/a.txt", "by the program")`,
    effects: ["modify"],
    beforeCommit: ({ workspace }) => writeFileSync(`${workspace}/a.txt`, "by somebody else"),
    commits: "conflict",
    breaches: ({ workspace }) =>
      readFileSync(`${workspace}/a.txt`, "utf8") === "by somebody else" ? [] : ["the other's change is lost"],
  },
  {
    name: "a folder that the program removes but that gained a file meanwhile is kept",
    language: "python",
    source: `os.unlink("/workspace/docs/b.txt"); os.rmdir("/workspace/docs")`,
    effects: ["delete", "rmdir"],
    beforeCommit: ({ workspace }) => writeFileSync(`${workspace}/docs/precious`, "kept"),
    commits: "conflict",
    breaches: ({ workspace }) => (existsSync(`${workspace}/docs/precious`) ? [] : ["the other's file is lost"]),
  },
  {
    name: "a folder flipped to a symlink and back without pause never leads a commit outside",
    language: "python",
    source: `
for n in range(40): put("/workspace/docs/n%d" % n, "by the program")`,
    effects: ["create", "delete", "mkdir", "modify", "rmdir", "symlink"],
    prepare({ workspace }) {
      mkdirSync(`${workspace}/spare`)
    },
    async meanwhile({ workspace, outside }, done) {
      const script = `import os, sys
ws, out = sys.argv[1:3]
os.symlink(out, ws + "/link")
libc = __import__("ctypes").CDLL(None)
while True: libc.renameat2(-100, (ws + "/docs").encode(), -100, (ws + "/link").encode(), 2)`
      const flipper = spawn("/usr/bin/python3", ["-c", script, workspace, outside], { stdio: "ignore" })
      await Promise.race([once(done, "abort"), once(flipper, "exit")])
      if (flipper.exitCode === null && flipper.kill("SIGKILL")) await once(flipper, "exit")
    },
    commit: true,
    commits: "any",
    endings: ["exit 0", "exit 1", "refused write-set"],
    cutShort: true,
    breaches: ({ outside }) =>
      readdirSync(outside).join() === "untouched" ? [] : [`written outside: ${readdirSync(outside)}`],
  },
  {
    name: "another call's layer, scratch and home are not visible",
    language: "python",
    source: `
for folder in ("/tmp", "/dev/shm", "/home/tool", "/var/tmp"):
    seen = os.listdir(folder)
    if seen: breach("%s holds %s" % (folder, seen))
for line in open("/proc/self/mountinfo"):
    if "caisson-escape" in line: breach("the workspace's place on the host shows: " + line.strip())`,
  },
  {
    name: "a file made outside during the call does not show in a folder of which only a part may be read",
    language: "python",
    source: (place) => `${waitsForOutside(place)}
for path in ("late.txt", "kept/late.txt", "late/late.txt", "/proc/self/cwd/late.txt"): must_fail(path, lambda: get(path))
for folder in (".", "kept"):
    if "late.txt" in os.listdir(folder): breach("the name is there")
if get("docs/b.txt") != b"two\\n" or get("kept/seen.txt") != b"seen": breach("what is allowed is not there")
put("out/made.txt", "by the program")`,
    prepare({ workspace }) {
      for (const folder of ["kept", "out"]) mkdirSync(`${workspace}/${folder}`)
      writeFileSync(`${workspace}/kept/seen.txt`, "seen")
    },
    profile: { view: { read: ["docs/**", "kept/seen*"], deny: [] }, write: ["out/**"] },
    meanwhile: makesOutside(["late.txt", "kept/late.txt", "late/late.txt"]),
    effects: ["create"],
  },
  {
    name: "a hidden file made outside during the call in a folder that the call writes in takes the whole call back",
    language: "python",
    source: (place) => `${waitsForOutside(place)}
may_fail(lambda: print(get("late.pem")))`,
    profile: { view: { read: ["**"], deny: ["*.pem"] }, write: ["**"] },
    meanwhile: makesOutside(["late.pem"]),
    endings: ["refused workspace-layer"],
  },
]
