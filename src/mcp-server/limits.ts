/** Every limit of the MCP server, once: its value, and what happens at it. */
interface McpLimit {
  readonly value: number
  readonly at: string
}
const limit = (value: number, at: string): McpLimit => Object.freeze({ value, at })

export const mcpLimits = Object.freeze({
  page: limit(100, "tools of one page; the rest is on the next"),
  textChars: limit(200_000, "of a value as text: the rest is in the structured result alone"),
  notes: limit(10, "denials told as text: the rest is in the structured result"),
  changeChars: limit(6_000, "of the changes shown in a question: the rest is at the address of the held call"),
  found: limit(20, "tools that a search names"),
  requestBytes: limit(18 * 1024 * 1024, "one message: 413, or the connection ends"),
  askSeconds: limit(600, "an answer that comes later is none; the call is held on"),
  progressMs: limit(200, "word of how far a call is comes no more often"),
}) satisfies Record<string, McpLimit>
