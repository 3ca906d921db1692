/**
 * A small agent platform on Caisson's daemon: an agent's token lists tools and calls them, a person's decides about effects.
 *
 * What it shows: the catalogue as functions for a model; an envelope as the message that the model sees next; a call whose
 * effects are held, shown as a diff and decided about by somebody else than the agent; a broken connection that does not
 * run a call twice.
 */
import { type Client, createClient, type Envelope, type Json } from "caisson/client"
import type { Model, ToolForModel } from "./model.ts"

/** As most models want functions named: letters, digits, `_` and `-`. */
const nameForModel = (id: string): string => id.replaceAll(".", "__")

export interface Platform {
  readonly agent: Client
  /** decides about effects; null: not now, they stay held */
  readonly decide: (diff: string, call: string) => Promise<"approve" | "deny" | null>
  /** the person's own connection; the agent's token can never approve */
  readonly person: Client
  readonly say: (line: string) => void
}

/** What the model may use: what this user may call, and can be served now. */
const toolsFor = async (agent: Client): Promise<ReadonlyMap<string, ToolForModel>> => {
  const { tools } = await agent.tools.list()
  return new Map(
    tools
      .filter((tool) => tool.availability.available)
      .map((tool) => [
        nameForModel(tool.id),
        { name: nameForModel(tool.id), tool: tool.id, description: tool.description, parameters: tool.inputs },
      ]),
  )
}

const diffOf = async (person: Client, call: string): Promise<string> => {
  const held = await person.approvals.get(call)
  return held.content
    .map((each) => each.diff ?? `${each.kind} ${each.path}${each.note ? ` (${each.note})` : ""}`)
    .join("\n")
}

/** The envelope of a call, held effects decided about. */
const settle = async (platform: Platform, envelope: Envelope): Promise<Envelope> => {
  if (envelope.ok || envelope.error.code !== "approval_required") return envelope
  const decision = await platform.decide(await diffOf(platform.person, envelope.call), envelope.call)
  return decision === null ? envelope : platform.person.approvals.decide(envelope.call, decision)
}

/** What the model reads of a call: its value, or the error with the hint of what can be done; and what was stopped. */
const messageOf = (envelope: Envelope): Json => ({
  ...(envelope.ok
    ? { value: envelope.value ?? null }
    : { error: envelope.error.code, message: envelope.error.message, hint: envelope.error.hint ?? "" }),
  changed: envelope.effects.filter((each) => each.committed).map((each) => `${each.kind} ${each.path}`),
  stopped: envelope.denied.map((each) => `${each.layer} ${each.target}`),
})

export const runTask = async (platform: Platform, model: Model, task: string, workspace: string): Promise<string> => {
  const tools = await toolsFor(platform.agent)
  const messages: Json[] = [{ task }]
  for (let turn = 0; turn < 20; turn++) {
    const wish = await model(messages, [...tools.values()])
    if ("answer" in wish) return wish.answer
    const tool = tools.get(wish.use)
    if (tool === undefined) {
      messages.push({ error: `there is no function ${wish.use}` })
      continue
    }
    platform.say(`-> ${tool.tool}`)
    // A key of its own: should the answer be lost, the same request brings the first answer and runs nothing.
    const key = crypto.randomUUID()
    const made = await platform.agent.calls.make({ tool: tool.tool, input: wish.input, workspace }, { key })
    const envelope = await settle(platform, made)
    platform.say(`<- ${envelope.ok ? "ok" : envelope.error.code}, receipt ${envelope.receipt}`)
    messages.push(messageOf(envelope))
  }
  return "the agent did not come to an end"
}

/** `node platform.ts WORKSPACE`: the scripted model on a daemon; addresses and tokens come from the environment. */
const main = async (workspace: string): Promise<void> => {
  const { scripted } = await import("./model.ts")
  const { CAISSON_ADDRESS: address = "http://127.0.0.1:7433", AGENT_TOKEN: token = "", PERSON_TOKEN = "" } = process.env
  const platform: Platform = {
    agent: createClient({ address, token }),
    person: createClient({ address, token: PERSON_TOKEN }),
    say: (line) => console.error(line),
    decide: async (diff) => {
      console.error(diff)
      return process.env["APPROVE"] === "yes" ? "approve" : null
    },
  }
  console.log(await runTask(platform, scripted, "write the list of open tasks to open.md", workspace))
}

if (import.meta.main) await main(process.argv[2] ?? process.cwd())
