/** Processes that answer the same held call at the same moment. */
import { type ChildProcessWithoutNullStreams, spawn } from "node:child_process"
import { once } from "node:events"
import { existsSync, readdirSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { expect, it } from "vitest"
import { readReceipts, verifyChain } from "../../src/host/index.ts"
import { openWorld, type World } from "./host-world.ts"

interface Decider extends AsyncDisposable {
  /** what it said to the next line that it was given */
  decide(id: string): Promise<string>
}
const decider = async ({ data }: World, answer: "approve" | "deny"): Promise<Decider> => {
  const program = join(import.meta.dirname, "host-decider.ts")
  const child: ChildProcessWithoutNullStreams = spawn(process.execPath, [program, data, answer, "namespace"])
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async (): Promise<string> => String((await lines.next()).value)
  expect(await next()).toBe("ready")
  return {
    decide: async (id) => {
      child.stdin.write(`${id}\n`)
      return await next()
    },
    async [Symbol.asyncDispose]() {
      const ended = once(child, "close")
      child.stdin.end()
      await ended
    },
  }
}

it("of processes that approve and deny a held call at once, one decides, and all that is left agrees with it", {
  timeout: 240_000,
}, async () => {
  await using world = await openWorld()
  await using one = await decider(world, "approve")
  await using two = await decider(world, "deny")
  await using three = await decider(world, "approve")
  for (let round = 0; round < 6; round += 1) {
    const path = `notes/${round}.txt`
    const held = await world.call("fixture.act", { verb: "write", args: [path, "x"] }, { approved: false })
    const id = held.call
    // The one that is asked first changes from round to round.
    const order = [one, two, three].map((_, index) => (index + round) % 3)
    const answers = ["", "", ""]
    await Promise.all(order.map(async (n) => (answers[n] = (await [one, two, three][n]?.decide(id)) ?? "")))
    expect(answers.filter((said) => said === "conflict")).toHaveLength(2)
    const decided = answers.find((said) => said !== "conflict") ?? ""
    expect([answers[0], answers[2]].includes("ok")).toBe(decided === "ok")
    expect(answers[1] === "approval_denied").toBe(decided === "approval_denied")
    expect(existsSync(join(world.workspace, path))).toBe(decided === "ok")
    const receipts = readReceipts(world.data, { call: id })
    expect(receipts.map(({ action }) => action).sort()).toEqual([
      "approval.decided",
      "approval.refused",
      "approval.refused",
      "tool.invoked",
    ])
    const final = receipts.find(({ action }) => action === "approval.decided")
    expect(final?.metadata).toMatchObject({ verdict: decided, effects_committed: decided === "ok" })
  }
  expect(await world.host.approvals()).toEqual([])
  expect(readdirSync(join(world.data, "held"))).toEqual([])
  expect(await verifyChain(world.data)).toMatchObject({ ok: true })
})
