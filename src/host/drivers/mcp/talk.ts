/**
 * The host's side of a talk with a server that runs: what is it, is that what was accepted, and then the call.
 *
 * Guarantees: the tool is called only after it was seen to be there, to fit the contract, and to be what was accepted, on
 * this very connection; what was looked at is what is called. Whatever the server does, there is an answer; one that does
 * not say whether something was changed elsewhere is told as unknown, and does not invite to ask again.
 */
import type { Tool } from "@modelcontextprotocol/client"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { JsonObject, McpSpec } from "../../../manifest/types.ts"
import type { Failure, Success } from "../../failure.ts"
import { hostLimits } from "../../limits.ts"
import type { Answer, Binding, KeptAnswer, Keeps, Session } from "../kind.ts"
import { type Closable, Connection, loadSdk } from "./client.ts"
import { LineTransport } from "./line-transport.ts"
import { misfit, offerOf } from "./offer.ts"
import { readResult } from "./result.ts"

type Heard = Pick<Session, "signal" | "tell" | "review" | "elicit">

const unfit = (name: string, why: string): Failure => ({
  ok: false,
  code: "tool_unavailable",
  message: `the server's tool \`${shown(name, 60)}\` ${why}`,
  hint: "correct `metadata.mcp` in the driver, or use the version of the server that it was written for",
  details: { tool_name: name.toWellFormed() },
})

interface Reviewed {
  readonly tool: Tool
  readonly notes: readonly string[]
}

/** The tool of one entry, seen to fit and accepted. */
const reviewed = async (
  connection: Connection,
  { tool: contract, implementation }: Binding,
  { review }: Pick<Heard, "review">,
  withinMs?: number,
): Promise<Answer<Reviewed>> => {
  const name = implementation.mcp?.toolName ?? ""
  const found = await connection.find(name, withinMs)
  if (!found.ok) return found
  if (found.value === undefined) return unfit(name, "is not there")
  const why = misfit(found.value, contract, implementation)
  if (why !== undefined) return unfit(name, why)
  const accepted = await review(name, offerOf(found.value))
  if (!accepted.ok) return accepted
  const { digest, first } = accepted.value
  const notes = first ? [`first use of the server's tool \`${shown(name, 60)}\`: accepted as ${digest}`] : []
  return { ok: true, value: { tool: found.value, notes } }
}

/** What only the way to the server knows. */
interface WayEnd {
  /** why it led nowhere, in words of its own */
  trouble(): Failure | undefined
  /** before it is closed for good */
  leave(): Promise<void>
}

const connect = async (
  transport: Closable,
  heard: Heard,
  spec: McpSpec,
  { trouble, kept = false }: { readonly trouble?: WayEnd["trouble"] | undefined; readonly kept?: boolean } = {},
): Promise<Connection> =>
  new Connection(await loadSdk(), transport, heard, {
    version: spec.protocolVersion,
    timeoutMs: spec.connection.timeoutMs,
    kept,
    trouble,
  })

const lines = async ({ stdin, stdout }: Pick<Session, "stdin" | "stdout">): Promise<LineTransport> => {
  if (stdout === undefined) throw new TypeError("a server speaks on its own output")
  const { parseJSONRPCMessage } = await loadSdk()
  return new LineTransport({ toServer: stdin, fromServer: stdout }, parseJSONRPCMessage)
}

/** One call of the tool that serves the binding. */
export const callOver = async (
  transport: Closable,
  heard: Heard,
  spec: McpSpec,
  binding: Binding,
  values: JsonObject,
  end?: WayEnd,
): Promise<Success | Failure> => {
  await using connection = await connect(transport, heard, spec, { trouble: end?.trouble })
  const failed = await connection.open()
  if (failed !== undefined) return { ...failed, undone: true }
  const { answer } = await callOn(connection, heard, binding, values)
  await end?.leave()
  return answer
}

export const callTool = async (
  session: Session,
  spec: McpSpec,
  binding: Binding,
  values: JsonObject,
): Promise<Success | Failure> => callOver(await lines(session), session, spec, binding, values)

/** JSON-RPC's words for a request that was not read, or whose method is none: all others may come after the tool ran. */
const UNREAD: readonly unknown[] = [-32700, -32601]

/** It was never asked, or refused the request itself; what its tool says of itself, or the client of its answer, is no such word. */
const isUndone = ({ rpc_code: refused, status, sent }: Failure["details"]): boolean =>
  UNREAD.includes(refused) || sent === false || (typeof status === "number" && status >= 400 && status < 500)

const known = (failure: Failure): Failure => (isUndone(failure.details) ? { ...failure, undone: true } : failure)

/** It could not be talked with: what it says of itself, or is, is another matter. */
const isSilent = ({ code }: Failure): boolean =>
  code === "upstream_error" || code === "timeout" || code === "limit_exceeded"

const callOn = async (
  connection: Connection,
  heard: Heard,
  binding: Binding,
  values: JsonObject,
  withinMs?: number,
): Promise<KeptAnswer> => {
  const found = await reviewed(connection, binding, heard, withinMs)
  if (!found.ok) return { answer: { ...found, undone: true }, left: isSilent(found) ? "unasked" : "unknown" }
  const { tool, notes } = found.value
  const called = await connection.call(tool, values)
  if (!called.ok)
    return {
      answer: known(called),
      left: called.details["rpc_code"] === undefined ? "unknown" : "answered",
    }
  const outcome = readResult(called.value, binding.tool.outputs, binding.implementation.mcp?.extract ?? [], tool.name)
  const answer = outcome.ok ? { ...outcome, notes: [...notes, ...outcome.notes] } : outcome
  return { answer, left: "answered" }
}

/** A server that is kept: what is known of it between two calls. */
class KeptServer implements AsyncDisposable {
  readonly #transport: LineTransport
  readonly #spec: McpSpec
  #connection: Connection | undefined
  constructor(transport: LineTransport, spec: McpSpec) {
    this.#transport = transport
    this.#spec = spec
  }
  async call(heard: Heard, binding: Binding, values: JsonObject): Promise<KeptAnswer> {
    const before = this.#connection
    if (before !== undefined) {
      this.#transport.renew()
      before.serve(heard)
      // It is up and was asked before: one that is silent now hangs.
      return callOn(before, heard, binding, values, hostLimits.mcpProbeMs.value)
    }
    const connection = await connect(this.#transport, heard, this.#spec, { kept: true })
    this.#connection = connection
    const failed = await connection.open()
    return failed === undefined
      ? callOn(connection, heard, binding, values)
      : { answer: { ...failed, undone: true }, left: "unasked" }
  }
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#connection?.[Symbol.asyncDispose]()
  }
}

/** The call over a server that was started for it, or for one before it. */
export const keepsServer = (spec: McpSpec, binding: Binding, values: JsonObject): Keeps => ({
  open: async (streams) => new KeptServer(await lines(streams), spec),
  converse(talk, heard) {
    if (!(talk instanceof KeptServer)) throw new TypeError("this talk is not with an MCP server")
    return talk.call(heard, binding, values)
  },
})

/** Every tool that the driver names, looked at and not called. A changed one is refused when it is called. */
export const inspect = async (
  session: Session,
  spec: McpSpec,
  bindings: readonly Binding[],
): Promise<Success | Failure> => {
  await using connection = await connect(await lines(session), session, spec)
  const failed = await connection.open()
  if (failed !== undefined) return failed
  for (const binding of bindings) {
    const found = await reviewed(connection, binding, session)
    if (!found.ok && found.code !== "policy_violation") return found
  }
  return { ok: true, value: connection.version, notes: [] }
}
