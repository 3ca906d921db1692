/** A talk over a server's own streams: that a cancel is passed on, and what may be asked of a server that is kept. */
import { createInterface } from "node:readline"
import { PassThrough } from "node:stream"
import { describe, expect, it } from "vitest"
import type { Keeps, Review, Session } from "../../../../src/host/drivers/kind.ts"
import { mcpKind } from "../../../../src/host/drivers/mcp/kind.ts"
import { asDriver, load } from "../../../manifest/from-text.ts"
import { programOf, toolOf } from "../../call/values.ts"

interface Message {
  readonly id?: number
  readonly method: string
  readonly params?: { readonly requestId?: number; readonly arguments?: object }
}
type Server = (message: Message, say: (message: object) => void) => void

const accepted: Review = async () => ({ ok: true, value: { digest: "sha256:0", first: false } })

const keepsOf = (): Keeps => {
  const contract = asDriver(
    load(
      "DRIVER.md",
      'name: x\nid: near\ndescription: d\nversion: 1.0.0\nkind: mcp\nserver: { kind: binary, path: srv }\ntransport: stdio\nprotocol_version: "2025-11-25"\nconnection_options: { keepalive: true }\nimplements: [{ tool: t.one, version: ^1.0.0, metadata: { mcp: { tool_name: do } } }]',
      "strict",
    ),
  )
  const tool = toolOf({ id: "t.one", inputs: { type: "object" }, outputs: { type: "string" }, mutates: [] })
  const { binding } = mcpKind.bind(contract, 0, tool, contract.implements[0] as never)
  const of = { binding, input: {}, context: {}, operation: "o", program: programOf() }
  const call = { tool, driver: { key: "near@1", contract }, ...of }
  const made = mcpKind.command(call)
  if (!made.ok || made.value.run !== "conversation" || made.value.keeps === undefined) throw new Error("not kept")
  return made.value.keeps
}

/** A server of the older era in this process; `call` answers `tools/call` and all that it is told besides. */
const serverOf = (call: Server) => {
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const heard: Message[] = []
  const say = (message: object): void => void stdout.write(`${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`)
  createInterface({ input: stdin }).on("line", (line) => {
    const message = JSON.parse(line) as Message
    const { id, method } = message
    heard.push(message)
    const info = { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "s", version: "1" } }
    if (method === "initialize") return say({ id, result: info })
    const tools = [{ name: "do", description: "Does it.", inputSchema: { type: "object" } }]
    if (method === "tools/list") return say({ id, result: { tools } })
    return call(message, say)
  })
  return { stdin, stdout, heard }
}
const session = (more: Partial<Session> = {}): Omit<Session, "stdin" | "stdout" | "pipes"> => ({
  signal: new AbortController().signal,
  tell: () => undefined,
  review: accepted,
  ...more,
})

describe("a talk with a server", () => {
  it("passes a cancel on, by the number of the request that it is for", async () => {
    const [cancel, told] = [new AbortController(), Promise.withResolvers<Message>()]
    const server = serverOf((message) => {
      if (message.method === "tools/call") cancel.abort()
      if (message.method === "notifications/cancelled") told.resolve(message)
    })
    const keeps = keepsOf()
    await using talk = await keeps.open(server)
    const { answer, left } = await keeps.converse(talk, session({ signal: cancel.signal }))
    expect(answer).toMatchObject({ ok: false, code: "cancelled" })
    expect(left).toBe("unknown")
    const asked = server.heard.find(({ method }) => method === "tools/call")
    expect((await told.promise).params?.requestId).toBe(asked?.id)
  })
  it("introduces itself once, and asks what the server is at each call", async () => {
    const server = serverOf(({ id, method }, say) => {
      if (method === "tools/call") say({ id, result: { content: [{ type: "text", text: "done" }] } })
    })
    const keeps = keepsOf()
    await using talk = await keeps.open(server)
    for (let calls = 0; calls < 2; calls += 1)
      expect(await keeps.converse(talk, session())).toMatchObject({
        answer: { ok: true, value: "done" },
        left: "answered",
      })
    const refused: Review = async () => ({ ok: false, code: "policy_violation", message: "changed", details: {} })
    expect(await keeps.converse(talk, session({ review: refused }))).toMatchObject({
      answer: { code: "policy_violation", undone: true },
      left: "unknown",
    })
    const methods = server.heard.map(({ method }) => method).filter((method) => !method.startsWith("notifications/"))
    expect(methods).toEqual(["initialize", "tools/list", "tools/call", "tools/list", "tools/call", "tools/list"])
  })
  it("asks nobody about what the server wants to know once its call is over", async () => {
    const answers: unknown[] = []
    const after = Promise.withResolvers<void>()
    const server = serverOf((message, say) => {
      if (message.method === "tools/call") {
        say({ id: message.id, result: { content: [{ type: "text", text: "done" }] } })
        return
      }
      if (message.method === undefined) {
        answers.push((message as unknown as { result: unknown }).result)
        after.resolve()
      }
    })
    const keeps = keepsOf()
    await using talk = await keeps.open(server)
    const over = new AbortController()
    const asked: unknown[] = []
    const elicit: Session["elicit"] = async (question) => {
      asked.push(question)
      return { action: "accept", content: {} }
    }
    await keeps.converse(talk, session({ signal: over.signal, elicit }))
    over.abort()
    const params = { message: "Still there?", requestedSchema: { type: "object", properties: {} } }
    server.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: "late", method: "elicitation/create", params })}\n`)
    await after.promise
    expect(asked).toEqual([])
    expect(answers).toEqual([{ action: "cancel" }])
  })
  it("says of a server that breaks off before it was asked that nothing was", async () => {
    const server = serverOf(() => undefined)
    const keeps = keepsOf()
    await using talk = await keeps.open(server)
    server.stdout.end()
    expect(await keeps.converse(talk, session())).toMatchObject({
      answer: { ok: false, code: "upstream_error", undone: true },
      left: "unasked",
    })
  })
})
