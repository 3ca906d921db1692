import { afterEach, beforeEach, expect, test, vi } from "vitest"
import { Conversation, LauncherEnded, LauncherGone } from "../../../src/sandbox/namespace/conversation.ts"
import { launch } from "../../../src/sandbox/namespace/launch.ts"
import { LAUNCHER } from "../../../src/sandbox/namespace/launcher/limits.ts"
import type { RequestMessage } from "../../../src/sandbox/namespace/launcher/protocol.ts"
import { shapeOf } from "../../../src/sandbox/profile.ts"
import { descendants, profileOf, removeFolder, stillAlive, temporaryFolder, until } from "../../support/sealed.ts"

let data = ""
beforeEach(() => {
  data = temporaryFolder("data")
})
afterEach(() => {
  vi.useRealTimers()
  removeFolder(data)
})

test("a launcher that hangs after it was ready is ended, and what it was asked ends too", async () => {
  const launched = await launch(data, 100)
  if ("ok" in launched) throw new Error(launched.message)
  const ended = vi.fn()
  launched.whenEnded(ended)
  const ours = descendants(launched.pid)
  process.kill(ours[0]?.pid as number, "SIGSTOP")
  const asked = [
    launched.ask({ op: "prepare", shape: shapeOf(profileOf()) }),
    launched.ask({ op: "commit", sandbox: 1 }),
  ]
  const outcomes = await Promise.allSettled(asked)
  expect(outcomes.map((outcome) => outcome.status === "rejected" && String(outcome.reason))).toEqual([
    expect.stringContaining("hangs"),
    expect.stringContaining("hangs"),
  ])
  expect(ended).toHaveBeenCalled()
  await expect(launched.ask({ op: "discard", sandbox: 1 })).rejects.toThrow("gone")
  await launched.close()
  await until(() => stillAlive(ours).length === 0, "the launcher and all of its processes are gone")
})

test("a launcher that is busy with one long request and gives signs is left alone", async () => {
  vi.useFakeTimers()
  const sent: RequestMessage[] = []
  const whenSilent = vi.fn()
  const busy: boolean[] = []
  const conversation = new Conversation({
    send(message) {
      sent.push(message)
      if (message.op === "ping") conversation.heard()
    },
    howItEnded: () => Promise.reject(new Error("it did not end")),
    whenBusy: (is) => busy.push(is),
    whenSilent,
  })
  const asked = conversation.ask({ op: "commit", sandbox: 1 })
  await vi.advanceTimersByTimeAsync(LAUNCHER.signMs * LAUNCHER.signsMissed * 10)
  expect(whenSilent).not.toHaveBeenCalled()
  conversation.answer(sent[0]?.id as number, { ok: true })
  await expect(asked).resolves.toEqual({ ok: true })
  const signs = sent.length
  await vi.advanceTimersByTimeAsync(LAUNCHER.signMs * 2)
  expect(sent).toHaveLength(signs)
  expect(busy).toEqual([true, false])
})

test("a request that could not be sent ends as one of which nothing was done, and is told what the launcher ended by once that is seen", async () => {
  const end = Promise.withResolvers<string>()
  const conversation = new Conversation({
    send: (_message, sent) => sent(new Error("write EPIPE")),
    howItEnded: () => end.promise,
    whenBusy: () => undefined,
    whenSilent: () => undefined,
  })
  const asked = conversation.ask({ op: "discard", sandbox: 1 })
  conversation.end(new LauncherEnded("it ended over something else"))
  end.resolve("it was ended from outside (SIGKILL)")
  await expect(asked).rejects.toThrow(new LauncherGone("it was ended from outside (SIGKILL)"))
})
