/**
 * The host's side of a talk with a server that runs: what is it, is that what was accepted, and then the call.
 *
 * Guarantees: the tool is called only after it was seen to be there, to fit the contract, and to be what was accepted, on
 * this very connection; what was looked at is what is called. Whatever the server does, there is an answer; one that does
 * not say whether something was changed elsewhere is told as unknown, and does not invite to ask again.
 */
import type { Tool } from "@modelcontextprotocol/client"
import { shown } from "../../../manifest/values/diagnostics.ts"
import type { JsonObject, McpSpec, ToolContract } from "../../../manifest/types.ts"
import { mutatesOutside } from "../../access/decide.ts"
import type { Failure, Success } from "../../failure.ts"
import type { Answer, Binding, Session } from "../kind.ts"
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
): Promise<Answer<Reviewed>> => {
  const name = implementation.mcp?.toolName ?? ""
  const found = await connection.find(name)
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
  trouble?: WayEnd["trouble"],
): Promise<Connection> =>
  new Connection(await loadSdk(), transport, {
    version: spec.protocolVersion,
    timeoutMs: spec.connection.timeoutMs,
    signal: heard.signal,
    tell: heard.tell,
    elicit: heard.elicit,
    trouble,
  })

const lines = async (session: Session): Promise<Closable> => {
  if (session.stdout === undefined) throw new TypeError("a server speaks on its own output")
  const { parseJSONRPCMessage } = await loadSdk()
  return new LineTransport({ toServer: session.stdin, fromServer: session.stdout }, parseJSONRPCMessage)
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
  await using connection = await connect(transport, heard, spec, end?.trouble)
  const outcome = await callOn(connection, heard, binding, values)
  await end?.leave()
  return outcome
}

export const callTool = async (
  session: Session,
  spec: McpSpec,
  binding: Binding,
  values: JsonObject,
): Promise<Success | Failure> => callOver(await lines(session), session, spec, binding, values)

/** The server said that it did not do it, or was never asked. */
const isUndone = ({ rpc_code: refused, status, sent }: Failure["details"]): boolean =>
  refused !== undefined || sent === false || (typeof status === "number" && status < 500)

/** It was asked, and nobody knows what it did of that which throwing the layer away does not undo. */
const inDoubt = (failure: Failure, tool: ToolContract): Failure =>
  mutatesOutside(tool).length === 0 || isUndone(failure.details)
    ? failure
    : {
        ...failure,
        ...(tool.idempotent ? {} : { retryable: false }),
        details: { ...failure.details, commit: "unknown" },
      }

const callOn = async (
  connection: Connection,
  heard: Heard,
  binding: Binding,
  values: JsonObject,
): Promise<Success | Failure> => {
  const failed = await connection.open()
  if (failed !== undefined) return failed
  const found = await reviewed(connection, binding, heard)
  if (!found.ok) return found
  const { tool, notes } = found.value
  const called = await connection.call(tool, values)
  if (!called.ok) return inDoubt(called, binding.tool)
  const outcome = readResult(called.value, binding.tool.outputs, binding.implementation.mcp?.extract ?? [], tool.name)
  return outcome.ok ? { ...outcome, notes: [...notes, ...outcome.notes] } : outcome
}

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
