/** AML tools of type human: the call is held until a person answers, and only whose answer counts is heard. */
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { processCaller, readReceipts } from "../../src/host/index.ts"
import type { Caller } from "../../src/host/access/caller.ts"
import type { Envelope, QuestionListing } from "../../src/host/types.ts"
import { type FormatsWorld, openFormatsWorld } from "./formats-world.ts"

const who = (user: string, more: Partial<Caller> = {}): Caller => ({
  user,
  actor: user,
  how: "token",
  workspaces: "any",
  roles: ["caller"],
  mayApprove: true,
  ...more,
})
const agent = who("alice", { actor: "alice", mayApprove: false })
const approver = who("bob", { roles: ["caller", "approver"] })
const code = (envelope: Envelope): string => (envelope.ok ? "ok" : envelope.error.code)

describe("AML human", () => {
  let world: FormatsWorld
  beforeAll(async () => {
    world = await openFormatsWorld({
      edit: (put) => {
        let text = ""
        put("aml/refund-approve.tool.md", (found) => (text = found))
        put("aml/hostile.tool.md", () =>
          text
            .replace("refund_approve", "hostile_ask")
            .replace("Ask about a refund", '"Approve\\e[2J\\u202Eevil"')
            .replace("title: Approve it?", 'title: "\\e[31mred"'),
        )
      },
    })
  }, 60_000)
  afterAll(async () => world[Symbol.asyncDispose]())

  const open = async (caller: Caller, order: string): Promise<QuestionListing> => {
    for (let tries = 0; tries < 600; tries += 1) {
      const found = (await world.host.questions.list({ caller })).find(({ input }) => input["order"] === order)
      if (found !== undefined) return found
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
    throw new Error("nobody was asked")
  }
  const asked = (order: string, signal?: AbortSignal): Promise<Envelope> =>
    world.call(
      "refund-approve",
      { order },
      { caller: agent, approved: false, ...(signal === undefined ? {} : { signal }) },
    )

  it("waits for a person, whose answer is the tool's, and who is in the receipt", async () => {
    const call = asked("1")
    const question = await open(approver, "1")
    expect(question).toMatchObject({ tool: "refund-approve@1", user: "alice", input: { order: "1" } })
    const answer = { approved: true, note: "fine" }
    expect(await world.host.questions.answer(question.id, answer, { caller: approver })).toMatchObject({ ok: true })
    const end = await call
    expect(end).toMatchObject({ ok: true, value: answer })
    const receipts = JSON.stringify(readReceipts(world.data, { call: end.call }))
    expect(receipts).toContain('"answered_by":"bob"')
    expect(receipts).not.toContain("fine")
  })

  it("is answered by nobody whose yes does not count", async () => {
    const stop = new AbortController()
    const call = asked("2", stop.signal)
    const { id } = await open(approver, "2")
    const say = async (caller: Caller): Promise<string> => {
      const taken = await world.host.questions.answer(id, { approved: true }, { caller })
      return taken.ok ? "ok" : taken.error.code
    }
    expect(await say(agent)).toBe("unauthorised")
    expect(await say(who("mallory"))).toBe("not_found")
    expect(await say(who("bob", { roles: ["caller", "approver"], mayApprove: false }))).toBe("unauthorised")
    expect(await say({ ...approver, tenant: "other" })).toBe("not_found")
    expect(await world.host.questions.list({ caller: { ...approver, tenant: "other" } })).toEqual([])
    expect(await world.host.questions.list({ caller: who("mallory") })).toEqual([])
    stop.abort()
    expect(code(await call)).toBe("cancelled")
  })

  it("takes only an answer that fits the form, and only one", async () => {
    const call = asked("3")
    const { id } = await open(approver, "3")
    const say = async (answer: object): Promise<string> => {
      const taken = await world.host.questions.answer(id, answer as never, { caller: approver })
      return taken.ok ? "ok" : taken.error.code
    }
    expect(await say({ approved: "yes" })).toBe("input_invalid")
    expect(await say({})).toBe("input_invalid")
    expect(await say({ approved: true, more: 1 })).toBe("input_invalid")
    expect(await say({ approved: false })).toBe("ok")
    expect(await say({ approved: true })).toBe("not_found")
    expect(await call).toMatchObject({ ok: true, value: { approved: false } })
  })

  it("an answer that came after its call was gone is given to the same call made again, once", async () => {
    const stop = new AbortController()
    const first = asked("4", stop.signal)
    const { id } = await open(approver, "4")
    stop.abort()
    await first
    expect(await world.host.questions.answer(id, { approved: true }, { caller: approver })).toMatchObject({ ok: true })
    expect(await asked("4")).toMatchObject({ ok: true, value: { approved: true } })
    const again = new AbortController()
    const third = asked("4", again.signal)
    expect((await open(approver, "4")).id).not.toBe(id)
    again.abort()
    await third
  })

  it("asks whoever made the call where their own yes counts, and an agent's client never", async () => {
    const messages: string[] = []
    const elicit = async ({ message }: { readonly message: string }) => {
      messages.push(message)
      return { action: "accept", content: { approved: true } } as const
    }
    const order = "5\u202e\n`x`"
    const mine = await world.call("refund-approve", { order }, { caller: processCaller(), elicit })
    expect(mine).toMatchObject({ ok: true, value: { approved: true } })
    // About what they say yes they have read.
    expect(messages).toEqual([
      expect.stringMatching(/^Ask about a refund: \{"order":"5.*`x`"\}\. A person of the finance/),
    ])
    expect(messages[0]).not.toMatch(/[\n\u202e]/)
    const stop = new AbortController()
    const call = world.call(
      "refund-approve",
      { order: "6" },
      { caller: agent, approved: false, elicit, signal: stop.signal },
    )
    expect((await open(approver, "6")).user).toBe("alice")
    stop.abort()
    expect(code(await call)).toBe("cancelled")
  })

  it("is not asked on the spot about more than can be shown there", async () => {
    const stop = new AbortController()
    const elicit = async () => expect.unreachable("the question does not fit")
    const order = `9${"x".repeat(5_000)}`
    const call = world.call("refund-approve", { order }, { caller: processCaller(), elicit, signal: stop.signal })
    expect((await open(approver, order)).input).toEqual({ order })
    stop.abort()
    expect(code(await call)).toBe("cancelled")
  })

  it("an answer by elicitation that does not fit is none", async () => {
    const elicit = async () => ({ action: "accept", content: { approved: "sure" } }) as const
    expect(code(await world.call("refund-approve", { order: "7" }, { caller: processCaller(), elicit }))).toBe(
      "output_invalid",
    )
  })

  it("shows text of a contract without what would steer a terminal", async () => {
    const stop = new AbortController()
    const call = world.call("hostile-ask", { order: "8" }, { caller: agent, approved: false, signal: stop.signal })
    const { message } = await open(approver, "8")
    expect(message).not.toMatch(/[\u001b\u202e]/)
    stop.abort()
    await call
  })
})
