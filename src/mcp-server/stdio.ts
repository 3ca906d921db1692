/**
 * The MCP server on a program's own stdin and stdout: one client, one caller, until either ends.
 *
 * Guarantees: stdout carries the protocol and nothing else. The end of stdin ends what is under way.
 */
import { once } from "node:events"
import { serveStdio, StdioServerTransport } from "@modelcontextprotocol/server/stdio"
import { Logins } from "./calls/login.ts"
import { Runs } from "./calls/runs.ts"
import { createStates } from "./calls/states.ts"
import { mcpLimits } from "./limits.ts"
import { createMcpServer, type McpOptions } from "./server.ts"

export const serveOnStdio = async (
  options: Omit<McpOptions, "states" | "runs" | "logins">,
  signal: AbortSignal,
  onFault: (error: unknown) => void,
): Promise<void> => {
  const states = createStates()
  using runs = new Runs()
  using logins = new Logins()
  const transport = new StdioServerTransport(process.stdin, process.stdout, {
    maxBufferSize: mcpLimits.requestBytes.value,
  })
  const served = serveStdio(() => createMcpServer({ ...options, states, runs, logins, watched: new Set() }), {
    transport,
    onerror: onFault,
  })
  // A file (`< requests`, `< /dev/null`) ends and is never closed; a pipe whose reader breaks is closed and never ends.
  const ended = process.stdin.readableEnded
    ? Promise.resolve()
    : Promise.race([once(process.stdin, "end", { signal }), once(process.stdin, "close", { signal })])
  await ended.catch(() => undefined)
  await served.close()
}
