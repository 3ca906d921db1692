/** MCP servers of both eras as drivers: started for one call, judged as any program, and asked again what they are. */
import { describe } from "vitest"
import { mcpSuite } from "./mcp-cases.ts"

describe.each(["legacy", "modern"] as const)("a server of the %s era", (era) => mcpSuite("namespace", era))
