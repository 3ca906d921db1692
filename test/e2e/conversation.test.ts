/** The host's talk with a program in a real sandbox: whatever either side does, the run ends and its layer is sealed. */
import { mkdirSync, mkdtempSync, realpathSync } from "node:fs"
import { createInterface } from "node:readline"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { converse } from "../../src/host/call/running/conversing/converse.ts"
import type { ConversationCommand, Session } from "../../src/host/drivers/kind.ts"
import type { Failure, Success } from "../../src/host/failure.ts"
import type { SandboxBackend } from "../../src/sandbox/backend.ts"
import { createNamespaceBackend } from "../../src/sandbox/namespace/backend.ts"
import { jobOf, shapeOf } from "../../src/sandbox/profile.ts"
import { removeFolder } from "../support/remove-folder.ts"
import { profileOf, temporaryFolder } from "../support/sealed.ts"

const python = "/usr/bin/python3"
let folder = ""
let backend: SandboxBackend
beforeAll(() => {
  folder = temporaryFolder("conversation")
  mkdirSync(`${folder}/data`)
  backend = createNamespaceBackend({ data: `${folder}/data` })
})
afterAll(async () => {
  await backend[Symbol.asyncDispose]()
  removeFolder(folder)
})

type Talk = (session: Session) => Promise<Success | Failure>
const good = (value: string): Success => ({ ok: true, value, notes: [] })
const firstLine = async (session: Session): Promise<string | undefined> => {
  for await (const line of createInterface({ input: session.pipes?.fromTool ?? (session.stdout as never) })) return line
  return undefined
}
const say = async (session: Session, word: string): Promise<Success | Failure> => {
  ;(session.pipes?.toTool ?? session.stdin).write(`${word}\n`)
  const line = await firstLine(session)
  return line === undefined
    ? { ok: false, code: "upstream_error", message: "it closed its side", details: {} }
    : good(line)
}

const hold = async (script: string, talk: Talk, { privatePipes = false, cancel = new AbortController() } = {}) => {
  const argv = [python, "-c", script]
  const profile = { ...profileOf({ program: python }), privatePipes }
  const prepared = await backend.prepare(shapeOf(profile))
  if (!prepared.ok) throw new Error(prepared.message)
  await using _prepared = prepared
  const workspace = realpathSync(mkdtempSync(`${folder}/ws-`))
  const running = await prepared.start(jobOf(profile, { argv, workspace }), cancel.signal)
  if (!running.ok) throw new Error(running.message)
  const command: ConversationCommand = { run: "conversation", argv, files: {}, converse: talk }
  const talked = await converse(running, command, {
    outputBytes: 65_536,
    signal: cancel.signal,
    tell: () => undefined,
  })
  if (!talked.ok) throw new Error(talked.message)
  const { ending, stdout, stderr, writes } = talked.exited
  await talked.exited.discard()
  const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString("utf8")
  return { answer: talked.answer, ending, stdout: text(stdout.bytes), stderr: text(stderr.bytes), writes }
}

const echo = "import sys\nfor line in sys.stdin:\n  print('heard', line.strip(), flush=True)"
const upper = (tail = ""): string =>
  `import os, sys\nopen('made.txt','w').write('x')\nprint('own output', flush=True)\nr = os.fdopen(3); w = os.fdopen(4, 'w')\nw.write(r.readline().upper()); w.flush()\n${tail}`

describe("a conversation", () => {
  it("is held on the program's own streams, and its end ends the program by the end of its input", async () => {
    const { answer, ending } = await hold(echo, (session) => say(session, "one"))
    expect(answer).toEqual(good("heard one"))
    expect(ending).toEqual({ by: "exit", code: 0 })
  })
  it("is held on private pipes, where stdout is the tool's own", async () => {
    const { answer, stdout, writes } = await hold(upper(), (session) => say(session, "two"), { privatePipes: true })
    expect(answer).toEqual(good("TWO"))
    expect(stdout).toBe("own output\n")
    expect(writes.effects.map(({ path }) => path)).toEqual(["made.txt"])
  })
  it("ends a program that stays when it has been answered", async () => {
    const stays = upper(
      "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: time.sleep(60)",
    )
    const { answer, ending } = await hold(stays, (session) => say(session, "three"), { privatePipes: true })
    expect(answer).toEqual(good("THREE"))
    expect(ending).toEqual({ by: "signal", signal: "SIGKILL" })
  })
  it("is not cut off before what a program that is gone had said", async () => {
    const { answer } = await hold("print('last word')", async (session) => good((await firstLine(session)) ?? "none"))
    expect(answer).toEqual(good("last word"))
  })
  it("tells how a program ended that gave no answer", async () => {
    const crashed = await hold("import sys; sys.stderr.write('why'); sys.exit(7)", (session) => say(session, "x"))
    expect(crashed.answer).toMatchObject({ ok: false, code: "upstream_error", details: { exit: 7 } })
    expect(crashed.stderr).toBe("why")
  })
  it("is over although the host's side waits for what never comes", async () => {
    const { answer } = await hold(
      "pass",
      ({ signal }) =>
        new Promise((resolve) => {
          signal.addEventListener("abort", () =>
            resolve({ ok: false, code: "upstream_error", message: "unheard", details: {} }),
          )
        }),
    )
    expect(answer).toMatchObject({ ok: false, message: "unheard" })
    const deaf = await hold("pass", () => new Promise(() => undefined))
    expect(deaf.answer).toMatchObject({ ok: false, message: "the program ended without an answer" })
  })
  it("takes what its own side throws for a fault of the host", async () => {
    const { answer } = await hold(echo, () => Promise.reject(new Error("a bug")))
    expect(answer).toMatchObject({ ok: false, code: "internal" })
  })
  it("ends at once when it is cancelled", async () => {
    const cancel = new AbortController()
    const { ending } = await hold(
      echo,
      async (session) => {
        await say(session, "x")
        cancel.abort()
        return new Promise((resolve) => {
          session.signal.addEventListener("abort", () => resolve(good("late")))
          if (session.signal.aborted) resolve(good("late"))
        })
      },
      { cancel },
    )
    expect(ending).toEqual({ by: "cancelled" })
  })
  it("is ended where the tool floods a stream that nobody needs", async () => {
    const flood = "import sys\nwhile True: sys.stderr.write('x' * 65536)"
    const { ending } = await hold(flood, (session) => say(session, "x"))
    expect(ending).toEqual({ by: "limit", limit: "output" })
  })
})
