import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, expect, test } from "vitest"
import { createNamespaceBackend } from "../../../src/sandbox/namespace/backend.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { descendants, profileOf, removeFolder, temporaryFolder } from "../../support/sealed.ts"

let data = ""
beforeEach(() => {
  data = temporaryFolder("data")
})
afterEach(() => removeFolder(data))

/** Runs a program at a terminal of its own, presses Ctrl-C when it waits, and prints what it said. */
const atTerminal = `
import os, pty, sys
pid, fd = pty.fork()
if pid == 0: os.execv(sys.argv[1], sys.argv[1:])
said = b""
pressed = False
while True:
    try: more = os.read(fd, 4096)
    except OSError: break
    if not more: break
    said += more
    if b"waiting" in said and not pressed:
        pressed = True
        os.write(fd, b"\\x03")
os.waitpid(pid, 0)
sys.stdout.write(said.decode())
`

test("Ctrl-C at the host's terminal reaches the host alone: the launcher and what it has ready stay", () => {
  const host = fileURLToPath(new URL("./fixtures/host-at-terminal.ts", import.meta.url))
  const said = execFileSync("python3", ["-c", atTerminal, process.execPath, "--no-warnings", host, data], {
    encoding: "utf8",
  })
  expect(said).toMatch(/left 3 of 3, apart true/)
})

test("a launcher that is killed is told as that, with what to do, and the next sandbox comes from a new one", async () => {
  await using backend = createNamespaceBackend({ data })
  await backend.start()
  const shape = shapeOf(profileOf())
  const launchers = (): number[] =>
    descendants(process.pid)
      .map(({ pid }) => pid)
      .filter((pid) => readFileSync(`/proc/${pid}/cmdline`, "latin1").includes(`launcher.ts\0${data}`))
  const inside = launchers().at(-1) as number
  process.kill(inside, "SIGSTOP")
  const preparing = backend.prepare(shape)
  process.kill(inside, "SIGKILL")
  const refused = await preparing
  expect(refused).toMatchObject({ ok: false, control: "launcher" })
  if (refused.ok) throw new Error("a sandbox of a dead launcher")
  expect(refused.message).toMatch(/^the sandbox launcher was ended from outside.*; the next call starts a new one$/)
  expect(refused.fix).toContain("call again")
  const next = await backend.prepare(shape)
  expect(next.ok).toBe(true)
  if (next.ok) await next[Symbol.asyncDispose]()
})
